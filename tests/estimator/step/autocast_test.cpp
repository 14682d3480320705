// Autocast: which arguments are converted, how long the copies live, and the gradients' way back.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/step/step_graph.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string two_layers = R"(
model: m
inputs: {x: {shape: [batch, 8]}, y: {shape: [batch, 8]}}
layers:
  - linear: {name: a, from: x, features: 8}
  - layer_norm: {name: norm}
  - linear: {name: b, from: norm, features: 8}
  - linear: {name: c, from: norm, features: 8, tie: {weight: b.weight}}
  - add: {name: sum, from: [b, c]}
loss:
  mse: {from: [sum, y]}
train: {precision: amp-bf16}
)";

std::vector<std::string> casts(const StepGraph& graph, Phase phase) {
  std::vector<std::string> names;
  for (const KernelNode& node : graph.nodes) {
    if (node.kernel == Kernel::cast && node.phase == phase) names.push_back(node.name);
  }
  return names;
}

const KernelNode& node_named(const StepGraph& graph, std::string_view name) {
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const KernelNode& node) { return node.name == name; });
  if (found == graph.nodes.end()) throw std::runtime_error("no node " + std::string(name));
  return *found;
}

}  // namespace

TEST_CASE("our executor compares in the format to which the operands promote") {
  const ModelGraph model = testing::described(R"(
model: m
inputs: {x: {shape: [batch, 8]}, y: {shape: [batch, 8]}}
layers:
  - linear: {name: a, from: x, features: 8}
  - layer_norm: {name: norm}
  - compare: {name: larger, from: [a, norm], operation: gt}
  - where: {name: chosen, from: [larger, a, norm]}
loss:
  mse: {from: [chosen, y]}
train: {precision: amp-bf16}
)");
  const auto graph = testing::lowered(model, {.kernels = KernelSet::stowage});
  for (const TensorView& operand : node_named(*graph, "larger.forward").reads) {
    CHECK(operand.type == DataType::float32);
  }
}

TEST_CASE("last argument first; a weight once, an activation for each of its users") {
  const ModelGraph model = testing::described(two_layers);
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    CAPTURE(to_string(kernels));
    const auto graph = testing::lowered(model, {.kernels = kernels});
    CHECK(casts(*graph, Phase::forward) ==
          std::vector<std::string>{"a.bias.cast", "a.weight.cast", "a.input.cast",
                                   "norm.input.cast", "b.bias.cast", "b.weight.cast",
                                   "b.input.cast", "c.bias.cast", "c.input.cast"});
    CHECK(casts(*graph, Phase::loss) == std::vector<std::string>{"loss.input0.cast"});
    CHECK(node_named(*graph, "b.forward").writes[0].type == DataType::bfloat16);
    CHECK(node_named(*graph, "norm.forward").writes[0].type == DataType::float32);
  }
}

TEST_CASE("gradients come back in the format of their tensors, a shared weight's once") {
  const auto graph =
      testing::lowered(testing::described(two_layers), {.kernels = KernelSet::pytorch});
  CHECK(casts(*graph, Phase::backward) ==
        std::vector<std::string>{"loss.cast_gradient", "c.cast_gradient", "c.cast_gradient~2",
                                 "b.cast_gradient", "b.cast_gradient~2", "b.cast_gradient~3",
                                 "norm.cast_gradient", "a.cast_gradient", "a.cast_gradient~2"});
  for (std::size_t i = 0; i < graph->gradients.size(); ++i) {
    CHECK(graph->gradients[i].type == DataType::float32);
  }
}

TEST_CASE("autocast's cache of weights lasts until the loss is there") {
  const auto graph =
      testing::lowered(testing::described(two_layers), {.kernels = KernelSet::pytorch});
  std::vector<std::string> held;
  for (const StorageId id : node_named(*graph, "loss.forward").holds) {
    if (graph->storage(id).storage_class == StorageClass::parameter_copy) {
      held.push_back(graph->storage(id).name);
    }
  }
  CHECK(held == std::vector<std::string>{"a.bias.cast", "a.weight.cast", "b.bias.cast",
                                         "b.weight.cast", "c.bias.cast"});
}

TEST_CASE("a frozen weight is converted for each use, and inference converts as training does") {
  std::string text = two_layers;
  const std::string plain = "features: 8}\n  - linear: {name: c";
  text.replace(text.find(plain), plain.size(), "features: 8, frozen: true}\n  - linear: {name: c");
  const auto frozen = testing::lowered(testing::described(text), {.kernels = KernelSet::pytorch});
  const std::vector<std::string> names = casts(*frozen, Phase::forward);
  CHECK(std::count(names.begin(), names.end(), "b.weight.cast") == 1);
  CHECK(std::count(names.begin(), names.end(), "b.weight.cast~2") == 1);
  const auto inference = testing::lowered(testing::described(two_layers),
                                          {.kernels = KernelSet::pytorch, .mode = Mode::inference});
  CHECK(casts(*inference, Phase::forward).size() == 9);
  CHECK(inference->nodes.back().holds.size() == 5);
}

TEST_CASE("without autocast nothing is converted, and statistics are wide") {
  for (const Precision precision : {Precision::bf16, Precision::fp64}) {
    auto model = load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", two_layers}),
                            {.precision = precision});
    REQUIRE(model.has_value());
    const auto graph = testing::lowered(*model, {.kernels = KernelSet::pytorch});
    CHECK(casts(*graph, Phase::forward).empty());
    CHECK(casts(*graph, Phase::backward).empty());
    const KernelNode& norm = node_named(*graph, "norm.forward");
    CHECK(norm.writes[0].type == float_type(precision));
    CHECK(norm.writes[1].type == statistics_type(float_type(precision)));
  }
}

TEST_CASE("where two formats meet, our executor converts, and PyTorch's kernels read both") {
  const ModelGraph model = testing::described(R"(
model: m
inputs: {x: {shape: [batch, 8]}, y: {shape: [batch, 16]}}
layers:
  - linear: {name: a, from: x, features: 8}
  - cast: {name: half, from: a, dtype: float16}
  - add: {name: sum, from: [half, a]}
  - concat: {name: both, from: [sum, half]}
loss:
  mse: {from: [both, y]}
)");
  CHECK(model.tensor(model.output).type.type == DataType::float32);
  const auto pytorch = testing::lowered(model, {.kernels = KernelSet::pytorch});
  CHECK(casts(*pytorch, Phase::forward) == std::vector<std::string>{"half.forward"});
  const auto own = testing::lowered(model, {.kernels = KernelSet::stowage});
  CHECK(casts(*own, Phase::forward) ==
        std::vector<std::string>{"half.forward", "sum.input0.cast", "both.input1.cast"});
}

TEST_CASE("what overwrites a view gets a copy of its gradient, and the base another") {
  const auto graph = testing::lowered(testing::described(R"(
model: m
inputs: {x: {shape: [batch, 4, 6]}, y: {shape: [batch, 8, 6]}}
layers:
  - conv1d: {name: conv, from: x, channels: 8, kernel: 1}
  - instance_norm: {name: norm}
  - relu: {name: relu, in_place: true}
loss:
  mse: {from: [relu, y]}
)"),
                                      {.kernels = KernelSet::pytorch});
  std::vector<std::string> names;
  for (const KernelNode& node : graph->nodes) {
    if (node.phase == Phase::backward) names.push_back(node.name);
  }
  CHECK(names == std::vector<std::string>{"loss.grad", "loss.backward", "relu.grad_base",
                                          "relu.grad_view", "relu.backward",
                                          "relu.grad_base.filled", "norm.backward",
                                          "conv.backward.filter", "conv.backward.bias"});
}

}  // namespace stowage
