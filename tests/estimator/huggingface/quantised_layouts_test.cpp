// Quantised configurations against the tensors that the libraries' own modules hold
// (tests/reference/quantised_layouts.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "estimator/adapt/adapt.hpp"
#include "tests/estimator/huggingface/described_config.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;

namespace {

/// The model of a configuration, as a server with a paged cache loads it: there compressed-tensors
/// stays packed. mxfp4 is as transformers loads it, with float32 biases.
ModelGraph quantised_model(const json& config) {
  const bool is_mxfp4 = config["quantization_config"]["quant_method"] == "mxfp4";
  const ImportOptions options{.seq = {}, .values = {{"attention", is_mxfp4 ? "eager" : "paged"}}};
  const auto imported = testing::imported_text(config.dump(), options);
  REQUIRE_MESSAGE(imported.has_value(), (imported ? "" : render(imported.error())));
  ModelOptions given{.seq = {}, .arguments = options.values};
  given.stored = imported->stored;
  auto model = load_adapted(imported->description, given);
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : render(model.error())));
  return *std::move(model);
}

std::int64_t bytes_of(const Parameter& parameter) {
  return element_count(parameter.type.shape).constant * element_size(parameter.type.type);
}

/// The libraries' names as ours: bitsandbytes' tables are attributes of a weight.
/// Those of experts that lie in one tensor are layers here.
std::string our_name(std::string name) {
  if (name.ends_with("experts.down_proj")) return name + ".weight_packed";
  if (name.ends_with("experts.down_proj_bias")) return name + ".weight";
  if (name.ends_with("experts.down_proj_scales")) {
    return name.substr(0, name.rfind('_')) + ".weight_scale";
  }
  for (const auto& [theirs, ours] :
       {std::pair{".weight_absmax", ".weight.absmax"},
        std::pair{".weight_quant_map", ".weight.quant_map"},
        std::pair{".weight_nested_", ".weight.nested_"}, std::pair{".SCB", ".weight.SCB"},
        std::pair{".activation_scale", ".input_scale"},
        std::pair{".input_scale_ub", ".input_scale"}}) {
    const std::size_t at = name.find(theirs);
    if (at != std::string::npos) return name.replace(at, std::string_view(theirs).size(), ours);
  }
  return name;
}

std::int64_t bytes_of_their_type(const std::string& type) {
  if (type.find('8') != std::string::npos) return 1;
  if (type.ends_with("64")) return 8;
  return type.ends_with("32") ? 4 : 2;
}

}  // namespace

TEST_CASE("quantised configurations have the tensors that the libraries' modules have") {
  std::ifstream file(testing::source_path("/tests/reference/quantised_layouts.json"));
  const json document = json::parse(file);
  for (const auto& item : document["cases"].items()) {
    const json& row = item.value();
    INFO(item.key());
    const ModelGraph model = quantised_model(row["config"]);
    std::int64_t bytes = 0, tensors = 0;
    std::map<std::string, std::int64_t> sizes;
    for (const Parameter& parameter : model.parameters) {
      if (parameter.name.find("rotary") != std::string::npos) continue;
      bytes += bytes_of(parameter);
      ++tensors;
      sizes[parameter.name] = bytes_of(parameter);
    }
    CHECK(bytes == row["bytes"].get<std::int64_t>());
    CHECK(tensors == row["tensors"].get<std::int64_t>());
    for (const auto& first : row["first"].items()) {
      const std::string& theirs = first.key();
      const json& tensor = first.value();
      INFO(theirs);
      std::int64_t expected = bytes_of_their_type(tensor[1]);
      for (const auto& dimension : tensor[0]) expected *= dimension.get<std::int64_t>();
      CHECK(sizes[our_name(theirs)] == expected);
    }
  }
}

TEST_CASE("a list that leaves all experts of gpt-oss as they are is said to") {
  std::ifstream file(testing::source_path("/tests/reference/quantised_layouts.json"));
  json config = json::parse(file)["cases"]["mxfp4-experts"]["config"];
  const auto notes = [&config](const char* kept) {
    config["quantization_config"]["modules_to_not_convert"] = {kept};
    return render(quantised_model(config).warnings);
  };
  CHECK(notes("mlp.experts") ==
        "note: its quantization_config (mxfp4) leaves all experts as they are\n");
  CHECK(notes("lm_head") ==
        "note: as its quantization_config says: the experts in mxfp4, groups of 32 (weight_packed, "
        "weight_scale); not quantised: q_proj, k_proj, v_proj and 3 others; 2.5 MiB of weights and "
        "their tables in all\n");
}

}  // namespace stowage
