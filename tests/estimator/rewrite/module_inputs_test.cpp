// What modules were called with is held until they have returned, in inference alone.
#include "estimator/rewrite/module_inputs.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/rewrite/lower_step.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

constexpr const char* nested = R"(model: nested
inputs:
  image: {shape: [batch, 8]}
  label: {shape: [batch], dtype: int64}
blocks:
  block:
    layers:
      - linear: {name: first, features: 8}
      - relu
      - linear: {name: second, features: 8}
layers:
  - linear: {name: stem, from: image, features: 8}
  - block: {name: stage, repeat: 2}
  - linear: {name: head, features: 3}
loss:
  cross_entropy: {from: [head, label]}
)";

constexpr const char* flat = R"(model: flat
inputs:
  image: {shape: [batch, 8]}
layers:
  - linear: {name: stem, from: image, features: 8}
  - linear: {name: fc1, features: 32}
  - gelu
  - linear: {name: fc2, features: 8}
  - linear: {name: head, features: 3}
modules: {mlp: [fc1, fc2]}
)";

StepGraph lowered(const char* text, const LoweringSettings& settings) {
  return lower_step(testing::described(text), settings).value();
}

StepGraph inference(const char* text) {
  return lowered(text, {.kernels = KernelSet::pytorch, .mode = Mode::inference});
}

/// The activations that the layer's last node holds, in the order of their names. A product holds
/// what it reads by itself.
std::string held_by(const StepGraph& step, const std::string& layer) {
  const auto is_its = [&](const KernelNode& node) { return step.layer(node.op) == layer; };
  const auto last = std::find_if(step.nodes.rbegin(), step.nodes.rend(), is_its);
  REQUIRE(last != step.nodes.rend());
  std::vector<std::string> names;
  for (const StorageId id : last->holds) {
    const Storage& storage = step.storage(id);
    if (storage.storage_class == StorageClass::activation) names.push_back(storage.name);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, " "));
}

TEST_CASE("a block's input is held until the block has returned, a chain's until the chain has") {
  const StepGraph step = inference(nested);
  CHECK(held_by(step, "stage.0.first") == "stem");
  CHECK(held_by(step, "stage.0.second") == "stage.0.relu_1 stem");
  CHECK(held_by(step, "stage.1.second") == "stage.0.second stage.1.relu_1 stem");
  CHECK(held_by(step, "head") == "stage.1.second");
}

TEST_CASE("modules that have no block here hold their inputs too") {
  const StepGraph step = inference(flat);
  CHECK(held_by(step, "fc1") == "stem");
  CHECK(held_by(step, "fc2") == "gelu_1 stem");
  CHECK(held_by(step, "head") == "fc2");
}

TEST_CASE("training steps and our own executor's hold what they held") {
  const ModelGraph model = testing::described(nested);
  for (const LoweringSettings& settings :
       {LoweringSettings{.kernels = KernelSet::pytorch},
        LoweringSettings{.kernels = KernelSet::stowage},
        LoweringSettings{.kernels = KernelSet::stowage, .mode = Mode::inference}}) {
    const StepGraph step = lower_step(model, settings).value();
    CHECK(with_module_inputs(step, model) == step);
  }
}

TEST_CASE("adding module inputs twice changes nothing") {
  const ModelGraph model = testing::described(nested);
  const StepGraph step = inference(nested);
  CHECK(with_module_inputs(step, model) == step);
}

}  // namespace
}  // namespace stowage
