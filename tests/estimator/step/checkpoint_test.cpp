// A description's checkpointed regions: what is kept, what runs again, and where it stops.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "estimator/step/step_graph.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string two_blocks = R"(
model: m
inputs: {x: {shape: [batch, 8]}, y: {shape: [batch, 8]}}
blocks:
  inner:
    layers:
      - linear: {name: up, features: 32}
      - gelu
      - linear: {name: down, features: 8}
      - add: {from: [down, input]}
layers:
  - inner: {name: h, from: x, repeat: 2, checkpoint: true}
loss:
  mse: {from: [h, y]}
)";

std::vector<std::string> recomputed(const StepGraph& graph) {
  std::vector<std::string> names;
  for (const KernelNode& node : graph.nodes) {
    if (node.name.find(".recomputed") != std::string::npos) names.push_back(node.name);
  }
  return names;
}

}  // namespace

TEST_CASE("each instance of a repeated block is a region, and the outermost of nested ones") {
  const ModelGraph model = testing::described(two_blocks);
  std::set<int> regions;
  for (const Operator& op : model.operators) regions.insert(op.region);
  CHECK(regions == std::set<int>{-1, 0, 1});
  std::string nested = two_blocks;
  const std::string gelu = "- gelu\n";
  nested.replace(nested.find(gelu), gelu.size(), "- gelu: {checkpoint: true}\n");
  const ModelGraph same = testing::described(nested);
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    CHECK(same.operators[i].region == model.operators[i].region);
  }
}

TEST_CASE("a region runs again before its first backward, up to what it saved last") {
  const ModelGraph model = testing::described(two_blocks);
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    CAPTURE(to_string(kernels));
    const auto graph = testing::lowered(model, {.kernels = kernels});
    // The last linear layer saves its input alone, and is not multiplied again; the sum behind it
    // saves nothing.
    CHECK(recomputed(*graph) ==
          std::vector<std::string>{"h.1.up.forward.recomputed", "h.1.gelu_1.forward.recomputed",
                                   "h.0.up.forward.recomputed", "h.0.gelu_1.forward.recomputed"});
  }
}

TEST_CASE("of a region's forward only what enters it is saved") {
  const auto graph =
      testing::lowered(testing::described(two_blocks), {.kernels = KernelSet::pytorch});
  std::vector<std::string> saved;
  for (const SavedTensor& tensor : graph->saved) {
    if (tensor.role == "region input") saved.push_back(graph->storage(tensor.storage).name);
  }
  CHECK(saved == std::vector<std::string>{"x", "h.0.add_1"});
  const auto of_blocks = std::count_if(
      graph->saved.begin(), graph->saved.end(),
      [](const SavedTensor& tensor) { return tensor.role == "input" && tensor.op.value < 8; });
  CHECK(of_blocks == 0);
}

TEST_CASE("inference runs nothing again") {
  const auto graph = testing::lowered(testing::described(two_blocks),
                                      {.kernels = KernelSet::pytorch, .mode = Mode::inference});
  CHECK(recomputed(*graph).empty());
}

}  // namespace stowage
