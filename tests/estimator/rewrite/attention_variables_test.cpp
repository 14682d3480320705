// What the variables of attention's functions hold in inference, where it is written out.
#include "estimator/rewrite/attention_variables.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/rewrite/lower_step.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

/// Two layers of one attention each, or of two; `held`: the softmax's attribute.
std::string attending(std::string_view held, bool twice = false) {
  const char* second = R"(      - attention: {name: cross, from: own}
)";
  return fmt::format(R"(model: attending
inputs:
  x: {{shape: [batch, 4, 8]}}
  label: {{shape: [batch, 4, 8]}}
blocks:
  attention:
    layers:
      - linear: {{name: q, features: 8}}
      - linear: {{name: k, from: input, features: 8}}
      - linear: {{name: v, from: input, features: 8}}
      - matmul: {{name: scores, from: [q, k], transpose_b: true}}
      - scale: {{name: scaled, factor: 0.5}}
      - softmax: {{name: weights, held: {}}}
      - matmul: {{name: attended, from: [weights, v]}}
      - linear: {{name: o, features: 8}}
  layer:
    layers:
      - attention: {{name: own}}
{}      - linear: {{name: fc1, features: 8}}
      - linear: {{name: fc2, features: 8}}
layers:
  - layer: {{name: layers, from: x, repeat: 2}}
loss:
  mse: {{from: [layers, label]}}
)",
                     held, twice ? second : "");
}

/// The storages that the layer's last node holds and does not read or write, in the order of their
/// names, of `layers.0` alone.
std::string held_after(const StepGraph& step, const std::string& layer) {
  const auto is_its = [&](const KernelNode& node) { return step.layer(node.op) == layer; };
  const auto last = std::find_if(step.nodes.rbegin(), step.nodes.rend(), is_its);
  REQUIRE(last != step.nodes.rend());
  std::vector<std::string> names;
  for (const StorageId id : last->holds) {
    const auto is_read = [&](const TensorView& view) { return view.storage == id; };
    if (std::ranges::any_of(last->reads, is_read)) continue;
    const Storage& storage = step.storage(id);
    if (storage.name.starts_with("layers.0.")) names.push_back(storage.name);
  }
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, " "));
}

StepGraph inference_of(const std::string& text) {
  return lower_step(testing::described(text),
                    {.kernels = KernelSet::pytorch, .mode = Mode::inference})
      .value();
}

TEST_CASE("the function holds queries, keys, values and weights until its module has returned") {
  const StepGraph step = inference_of(attending("module"));
  CHECK(held_after(step, "layers.0.own.o") ==
        "layers.0.own.k layers.0.own.q layers.0.own.v layers.0.own.weights");
  CHECK(held_after(step, "layers.0.fc2") == "");
}

TEST_CASE("weights that are returned are held until the repeated layer has returned") {
  const StepGraph step = inference_of(attending("layer"));
  CHECK(held_after(step, "layers.0.own.o") ==
        "layers.0.own.k layers.0.own.q layers.0.own.v layers.0.own.weights");
  CHECK(held_after(step, "layers.0.fc2") == "layers.0.own.weights");
}

TEST_CASE("a second attention's weights take the variable of the first ones'") {
  const StepGraph step = inference_of(attending("layer", true));
  CHECK(held_after(step, "layers.0.cross.o") ==
        "layers.0.cross.k layers.0.cross.q layers.0.cross.v layers.0.cross.weights "
        "layers.0.own.o layers.0.own.weights");
  CHECK(held_after(step, "layers.0.fc2") == "layers.0.cross.weights");
}

TEST_CASE("a softmax that is no attention's holds nothing more") {
  const StepGraph step = inference_of(attending("nothing"));
  CHECK(held_after(step, "layers.0.own.o") == "");
  CHECK(held_after(step, "layers.0.fc2") == "");
}

TEST_CASE("training steps and our own executor's are left as they are") {
  const ModelGraph model = testing::described(attending("layer"));
  for (const LoweringSettings& settings :
       {LoweringSettings{.kernels = KernelSet::pytorch},
        LoweringSettings{.kernels = KernelSet::stowage, .mode = Mode::inference}}) {
    const StepGraph step = lower_step(model, settings).value();
    CHECK(with_attention_variables(step, model) == step);
  }
}

}  // namespace
}  // namespace stowage
