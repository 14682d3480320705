// Which modules torch.utils.checkpoint can run again: a second run reads what the first one read.
#include "planner/pytorch/module_regions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "estimator/document/make_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/rates.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

KernelNode& first_kernel_of(StepGraph& graph, const std::string& module) {
  return *std::ranges::find_if(graph.nodes, [&](const KernelNode& node) {
    return node.phase == Phase::forward && graph.layer(node.op).starts_with(module + ".");
  });
}

StepGraph resnet() {
  const ChosenStep chosen{.lowering = {.kernels = KernelSet::pytorch, .mode = Mode::train}};
  return *make_document(testing::shipped("resnet18"), chosen, Runtime::pytorch, {}, step_alone)
              .value()
              .graph;
}

std::vector<std::string> regions_of(const StepGraph& graph) {
  const auto workspaces = rule_workspace_source(8.6);
  const auto step = size_step(std::make_shared<const StepGraph>(graph), 8, *workspaces);
  REQUIRE(step.has_value());
  std::vector<std::string> names;
  for (const ModuleRegion& region :
       module_regions(*step, make_rates(generic_card(64_GiB), Host{.name = "test"})))
    names.push_back(region.module);
  return names;
}

}  // namespace

TEST_CASE("a module whose input a later kernel of forward writes to does not run again") {
  StepGraph graph = resnet();
  std::vector<std::string> names = regions_of(graph);
  REQUIRE(std::ranges::count(names, "layer2.0") == 1);
  const TensorView given = first_kernel_of(graph, "layer2.0").reads.front();
  first_kernel_of(graph, "layer2.1").writes.push_back(given);
  std::erase(names, "layer2.0");
  std::erase(names, "layer2.1");  // a second run would write there once more
  CHECK(regions_of(graph) == names);
}

TEST_CASE("a module that saves a tensor before its kernel writes to it does not run again") {
  StepGraph graph = resnet();
  std::vector<std::string> names = regions_of(graph);
  const auto saved = std::ranges::find_if(graph.saved, [&](const SavedTensor& one) {
    const bool persists = graph.storage(one.storage).persistence == Persistence::persistent;
    return !persists && graph.layer(one.op).starts_with("layer3.1.bn");
  });
  REQUIRE(saved != graph.saved.end());
  saved->call = SavedCall{
      .key = "layer3.1#0", .view = {.storage = saved->storage}, .packed_after = NodeId{0}};
  std::erase(names, "layer3.1");
  CHECK(regions_of(graph) == names);
}

}  // namespace stowage
