// Bases in GPTQ's, AWQ's and torchao's int4 layouts: their tensors, and what their steps restore.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/adapt/adapt.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/step/choose_step.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string packed_network = R"(model: packed
inputs: {tokens: {shape: [batch, 6], dtype: int64}, t: {shape: [batch, 6], dtype: int64}}
layers:
  - embedding: {name: table, from: tokens, count: 50, features: 256}
  - linear: {name: up, features: 384}
  - linear: {name: down, features: 256}
  - linear: {name: gate, features: 1, bias: false}
  - mul: {name: gated, from: [down, gate]}
  - linear: {name: head, features: 50}
  - transpose: {axes: [0, 2, 1]}
loss: {cross_entropy: {from: [transpose_1, t]}}
)";

Result<ModelGraph> packed_model(const FineTuningTexts& texts,
                                Precision precision = Precision::bf16) {
  return load_adapted(std::make_shared<const SourceText>(SourceText{"packed.yaml", packed_network}),
                      {.precision = precision, .fine_tuning = texts});
}

std::vector<std::string> tensors_of_layer(const ModelGraph& model, std::string_view layer) {
  std::vector<std::string> tensors;
  for (const Parameter& parameter : model.parameters) {
    if (!parameter.name.starts_with(std::string(layer) + ".")) continue;
    tensors.push_back(parameter.name.substr(layer.size() + 1) + " " +
                      std::string(to_string(parameter.type.type)) + " " +
                      to_string(parameter.type.shape));
  }
  return tensors;
}

/// How many kernel calls of the step restore a weight, in forward and in backward.
std::pair<std::int64_t, std::int64_t> restored_weights(const ModelGraph& model, Mode mode,
                                                       KernelSet kernels) {
  const auto step = lower_step(model, {.kernels = kernels, .mode = mode});
  REQUIRE_MESSAGE(step.has_value(), (step ? "" : render(step.error())));
  const auto count = [&](std::string_view ending) {
    return std::count_if(step->nodes.begin(), step->nodes.end(), [&](const KernelNode& node) {
      return std::string_view(node.name).ends_with(ending);
    });
  };
  return {count(".forward.restore"), count(".backward.restore")};
}

}  // namespace

TEST_CASE("packed bases have the tensors of their libraries") {
  const auto tensors = [](const std::string& base) {
    const auto model = packed_model({.base = base});
    REQUIRE_MESSAGE(model.has_value(), (model ? "" : render(model.error())));
    return tensors_of_layer(*model, "up");
  };
  using Names = std::vector<std::string>;
  CHECK(tensors("gptq") == Names{"qweight int32 [32, 384]", "bias bfloat16 [384]",
                                 "qzeros int32 [2, 48]", "scales float16 [2, 384]",
                                 "g_idx int32 [256]"});
  CHECK(tensors("gptq,bits=3,group=-1") == Names{"qweight int32 [24, 384]", "bias bfloat16 [384]",
                                                 "qzeros int32 [1, 36]", "scales float16 [1, 384]",
                                                 "g_idx int32 [256]"});
  CHECK(tensors("awq,group=64") == Names{"qweight int32 [256, 48]", "bias bfloat16 [384]",
                                         "qzeros int32 [4, 48]", "scales float16 [4, 384]"});
  CHECK(tensors("int4") == Names{"qdata uint8 [384, 128]", "bias bfloat16 [384]",
                                 "scale bfloat16 [2, 384]", "zero_point bfloat16 [2, 384]"});
}

TEST_CASE("a packed base keeps its count of parameters, and layers that the library leaves") {
  const ModelGraph plain = testing::described(packed_network);
  for (const std::string base : {"gptq", "awq", "int4"}) {
    CAPTURE(base);
    const auto model = packed_model({.base = base});
    REQUIRE_MESSAGE(model.has_value(), (model ? "" : render(model.error())));
    CHECK(parameter_count(*model) == parameter_count(plain));
    CHECK(trainable_parameter_count(*model) == 0);
    const bool gate_stays = tensors_of_layer(*model, "gate").front() == "weight bfloat16 [1, 256]";
    CHECK(gate_stays == (base != "int4"));
  }
  // Rows of 384 values are no whole number of groups of 256.
  const auto model = packed_model({.base = "int4,group=256"});
  REQUIRE(model);
  CHECK(tensors_of_layer(*model, "down").front() == "weight bfloat16 [256, 384]");
  CHECK(render(model->warnings) ==
        "note: 2 linear layers in torchao's int4, 4 bits, groups of 256 (qdata, scale, "
        "zero_point)\n");
}

TEST_CASE("a layer whose size a layout does not have is refused") {
  const auto model = packed_model({.base = "awq,group=100"});
  REQUIRE_FALSE(model);
  CHECK(model.error().front().message ==
        "'up': awq stores no such layer: its 256 input features are no multiple of 100");
}

TEST_CASE("fused products restore no weight, and training restores each twice") {
  using Counts = std::pair<std::int64_t, std::int64_t>;
  const auto counts = [](const std::string& base, Mode mode, KernelSet kernels) {
    FineTuningTexts texts{.lora = {}, .base = base};
    if (mode == Mode::train) texts.lora = "r=2,targets=up+down";
    const auto model = packed_model(texts);
    REQUIRE_MESSAGE(model.has_value(), (model ? "" : render(model.error())));
    return restored_weights(*model, mode, kernels);
  };
  CHECK(counts("gptq", Mode::inference, KernelSet::pytorch) == Counts{0, 0});
  CHECK(counts("gptq,bits=3", Mode::inference, KernelSet::pytorch) == Counts{2, 0});
  CHECK(counts("gptq", Mode::inference, KernelSet::stowage) == Counts{2, 0});
  // The first layer's input needs no gradient.
  CHECK(counts("gptq", Mode::train, KernelSet::pytorch) == Counts{1, 1});
  CHECK(counts("awq", Mode::train, KernelSet::stowage) == Counts{2, 1});
}

}  // namespace stowage
