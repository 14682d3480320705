// How long a branch that leads to no loss keeps what it saved.
#include <doctest/doctest.h>

#include <string>

#include "estimator/step/step_graph.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string codebook = R"(
model: m
inputs: {x: {shape: [batch, 8]}, y: {shape: [batch, 4]}}
layers:
  - linear: {name: up, from: x, features: 16}
  - sigmoid: {name: gate}
  - linear: {name: scores, features: 12}
  - argmax: {name: place, axis: 1}
  - embedding: {name: row, count: 12, features: 4}
loss:
  mse: {from: [row, y]}
)";

/// Names of what the node of that name holds, without what it reads.
std::string held_by(const StepGraph& graph, const std::string& node_name) {
  std::string names;
  for (const KernelNode& node : graph.nodes) {
    if (node.name != node_name) continue;
    for (const StorageId id : node.holds) names += graph.storages[id.index()].name + " ";
  }
  return names;
}

}  // namespace

TEST_CASE("what leads to an argmax alone is saved until the argmax has run") {
  const ModelGraph model = testing::described(codebook);
  const auto pytorch = testing::lowered(model, {.kernels = KernelSet::pytorch});
  CHECK(held_by(*pytorch, "place.forward") == "scores.weight x gate ");
  // Our own executor saves for no backward pass that does not come.
  const auto ours = testing::lowered(model, {.kernels = KernelSet::stowage});
  CHECK(held_by(*ours, "place.forward") == "");
}

TEST_CASE("a branch that the loss reads holds nothing early") {
  std::string with_branch = codebook;
  with_branch.replace(with_branch.find("mse: {from: [row, y]}"), 21, "mse: {from: [both, y]}");
  const std::string row = "- embedding: {name: row, count: 12, features: 4}\n";
  with_branch.insert(with_branch.find(row) + row.size(),
                     "  - linear: {name: few, from: scores, features: 4}\n"
                     "  - add: {name: both, from: [row, few]}\n");
  const auto graph =
      testing::lowered(testing::described(with_branch), {.kernels = KernelSet::pytorch});
  CHECK(held_by(*graph, "place.forward") == "");
}

}  // namespace stowage
