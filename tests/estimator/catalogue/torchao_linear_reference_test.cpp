// What torchao's linear layers hold at their peak (tests/reference/torchao_linear.py), to the byte,
// and products that run in another way up to a number of rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "estimator/adapt/adapt.hpp"
#include "estimator/adapt/quantised_base.hpp"
#include "estimator/memory/sized_step.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

const std::map<std::string, std::string> torchao_configs{
    {"int8", R"("Int8WeightOnlyConfig", "_data": {})"},
    {"int8 tensor", R"("Int8WeightOnlyConfig", "_data": {"granularity": {"_type": "PerTensor"}})"},
    {"int8 group 32", R"("Int8WeightOnlyConfig", "_data": {"granularity": {"_type": "PerGroup",
                         "_data": {"group_size": 32}}})"},
    {"float8", R"("Float8WeightOnlyConfig", "_data": {})"},
    {"float8 tensor",
     R"("Float8WeightOnlyConfig", "_data": {"granularity": {"_type": "PerTensor"}})"},
    {"float8 group 32", R"("Float8WeightOnlyConfig", "_data": {"granularity": {"_type": "PerGroup",
                           "_data": {"group_size": 32}}})"},
    {"int8 inputs", R"("Int8DynamicActivationInt8WeightConfig", "_data": {})"},
    {"int8 inputs tensor", R"("Int8DynamicActivationInt8WeightConfig", "_data": {"granularity":
                              {"_type": "PerTensor"}})"},
    {"int8 inputs asymmetric", R"("Int8DynamicActivationInt8WeightConfig", "_data":
                                  {"act_mapping_type": {"_type": "MappingType",
                                   "_data": "ASYMMETRIC"}})"},
    {"float8 inputs", R"("Float8DynamicActivationFloat8WeightConfig", "_data": {})"},
    {"float8 inputs row", R"("Float8DynamicActivationFloat8WeightConfig", "_data": {"granularity":
                             [{"_type": "PerRow"}, {"_type": "PerRow"}]})"}};

BaseSettings torchao_base(const std::string& config) {
  const auto imported = testing::imported_text(
      R"({"model_type": "llama", "torch_dtype": "bfloat16", "quantization_config":
          {"quant_method": "torchao", "quant_type": {"default": {"_type": )" +
      config + "}}}}");
  REQUIRE_MESSAGE(imported.has_value(), (imported ? "" : render(imported.error())));
  REQUIRE(imported->stored != nullptr);
  return imported->stored->groups.front().base;
}

/// The inference of a layer "measured" of 384 features, of rows [batch, length].
SizedStep sized_layer(const BaseSettings& base, Precision precision, std::int64_t in,
                      std::int64_t length, std::int64_t batch, bool bias) {
  const std::string text = "model: one\ninputs: {x: {shape: [batch, " + std::to_string(length) +
                           ", " + std::to_string(in) +
                           "]}}\nlayers:\n  - linear: {name: measured, features: 384, bias: " +
                           (bias ? "true" : "false") +
                           "}\n  - relu: {name: after}\n  - linear: {name: head, features: 16}\n";
  const auto plain = load_model(std::make_shared<const SourceText>(SourceText{"one.yaml", text}),
                                {.precision = precision});
  REQUIRE_MESSAGE(plain.has_value(), (plain ? "" : render(plain.error())));
  const auto model = with_quantised_base(*plain, base);
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : render(model.error())));
  const auto sized = size_storages(
      testing::lowered(*model, {.kernels = KernelSet::pytorch, .mode = Mode::inference}), batch);
  REQUIRE(sized);
  return *sized;
}

/// Of what the layer's kernels make, beside its inputs and parameters.
std::int64_t peak_of_layer(const SizedStep& sized) {
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> lives;
  const StepGraph& graph = *sized.graph;
  std::set<std::size_t> steps;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    if (graph.layer(node.op) != "measured") continue;
    steps.insert(i);
    const auto touch = [&](StorageId id) {
      const Storage& storage = graph.storage(id);
      if (!storage.name.starts_with("measured") || storage.parameter.valid()) return;
      lives.try_emplace(id.index(), i, i).first->second.second = i;
    };
    for (const TensorView& view : node.reads) touch(view.storage);
    for (const TensorView& view : node.writes) touch(view.storage);
    for (const StorageId id : node.holds) touch(id);
    for (const StorageId id : node.temporaries) touch(id);
  }
  std::int64_t peak = 0;
  for (const std::size_t at : steps) {
    std::int64_t live = 0;
    for (const auto& [id, life] : lives) {
      if (life.first <= at && at <= life.second) live += sized.storage_bytes[id].count();
    }
    peak = std::max(peak, live);
  }
  return peak;
}

/// The bytes of a storage of the layer "measured".
std::int64_t bytes_of_part(const SizedStep& sized, std::string_view name) {
  for (std::size_t i = 0; i < sized.graph->storages.size(); ++i) {
    if (sized.graph->storages[i].name == "measured." + std::string(name)) {
      return sized.storage_bytes[i].count();
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("torchao's linear layers hold what its Python code allocates, to the byte") {
  std::ifstream file(testing::source_path("/tests/reference/torchao_linear.json"));
  const json document = json::parse(file);
  REQUIRE(document["out"] == 384);
  for (const json& row : document["rows"]) {
    INFO(row.dump());
    const Precision precision = row["dtype"] == "float32" ? Precision::fp32 : Precision::bf16;
    const BaseSettings base = torchao_base(torchao_configs.at(row["config"]));
    const SizedStep sized =
        sized_layer(base, precision, document["in"], row["rows"][1], row["rows"][0], row["bias"]);
    CHECK(peak_of_layer(sized) == row["peak_bytes"].get<std::int64_t>());
  }
}

TEST_CASE("bitsandbytes restores no weight of 4 bits for up to 4 rows") {
  for (const bool twice : {true, false}) {
    const BaseSettings nf4{.format = BaseFormat::nf4, .double_quantised = twice};
    const auto restored = [&](std::int64_t in, std::int64_t rows, std::string_view name) {
      return bytes_of_part(sized_layer(nf4, Precision::bf16, in, 1, rows, false), name);
    };
    CHECK(restored(512, 4, "forward.weight") == 0);
    CHECK(restored(512, 5, "forward.weight") == 512 * 384 * 2);
    CHECK(restored(512, 4, "forward.absmax") == (twice ? 0 : -1));
    CHECK(restored(512, 5, "forward.offset_absmax") == (twice ? 512 * 384 / 64 * 4 : -1));
    // The fused kernel wants rows of whole blocks of 64.
    CHECK(restored(96, 1, "forward.weight") == 96 * 384 * 2);
  }
}

TEST_CASE("torchao's products are fused where a server with a paged cache runs them") {
  const auto fused = [](const std::string& config) { return torchao_base(config).packed.fused; };
  CHECK_FALSE(fused(torchao_configs.at("int8")));
  CHECK_FALSE(fused(torchao_configs.at("float8 inputs")));
  CHECK_FALSE(fused(R"("Int4WeightOnlyConfig", "_data": {"int4_packing_format":
                       "tile_packed_to_4d"})"));
  const auto paged = testing::imported_text(
      R"({"model_type": "llama", "quantization_config": {"quant_method": "torchao", "quant_type":
          {"default": {"_type": )" +
          torchao_configs.at("int8 inputs") + "}}}}",
      {.seq = {}, .values = {{"attention", "paged"}}});
  REQUIRE(paged);
  CHECK(paged->stored->groups.front().base.packed.fused);
  // mslk's kernels, which are for inputs with a scale a row alone.
  CHECK(fused(R"("Float8DynamicActivationFloat8WeightConfig", "_data": {"kernel_preference":
                 {"_type": "KernelPreference", "_data": "MSLK"}, "granularity":
                 {"_type": "PerRow"}})"));
}

TEST_CASE("adapters beside torchao's weights save each restored weight, and restore none again") {
  const std::string text =
      "model: one\ninputs: {x: {shape: [batch, 4, 64]}, t: {shape: [batch, 4]"
      ", dtype: int64}}\nlayers:\n  - linear: {name: first, features: 96}\n"
      "  - linear: {name: second, features: 128}\n"
      "  - linear: {name: head, features: 16}\n"
      "  - transpose: {axes: [0, 2, 1]}\n"
      "loss: {cross_entropy: {from: [transpose_1, t]}}\n";
  for (const char* config : {"int8", "int8 group 32", "float8", "float8 group 32"}) {
    CAPTURE(config);
    auto stored = std::make_shared<CheckpointFormats>();
    stored->groups.push_back({.targets = {{.kind = LayerRule::Kind::linear}},
                              .base = torchao_base(torchao_configs.at(config))});
    ModelOptions options{.precision = Precision::bf16, .fine_tuning = {}};
    options.fine_tuning.lora = "r=2,targets=first+second";
    options.stored = stored;
    const auto model =
        load_adapted(std::make_shared<const SourceText>(SourceText{"one.yaml", text}), options);
    REQUIRE_MESSAGE(model.has_value(), (model ? "" : render(model.error())));
    const auto step =
        testing::lowered(*model, {.kernels = KernelSet::pytorch, .mode = Mode::train});
    // The first layer's input needs no gradient.
    std::vector<std::string> restored;
    for (const SavedTensor& saved : step->saved) {
      if (saved.role == "restored") {
        restored.push_back(step->storage(saved.storage).name + " " +
                           step->storage(saved.storage).bytes.to_string());
      }
    }
    CHECK(restored ==
          std::vector<std::string>{"second.forward.weight " + std::to_string(96 * 128 * 2)});
    CHECK(std::none_of(step->nodes.begin(), step->nodes.end(), [](const KernelNode& node) {
      return node.name.ends_with(".backward.restore");
    }));
  }
}

TEST_CASE("no adapters are trained beside torchao's quantised inputs") {
  CHECK(torchao_base(torchao_configs.at("int8")).trains_adapters);
  CHECK(torchao_base(torchao_configs.at("float8 group 32")).trains_adapters);
  CHECK_FALSE(torchao_base(torchao_configs.at("int8 inputs")).trains_adapters);
  CHECK_FALSE(torchao_base(torchao_configs.at("float8 inputs")).trains_adapters);
  CHECK(to_string(torchao_base(torchao_configs.at("float8 inputs"))) ==
        "torchao's float8 with inputs in float8, one scale");
}

}  // namespace stowage
