#include "planner/plan/plan_step.hpp"

#include <algorithm>

#include "estimator/step/lower.hpp"

namespace stowage {

Result<StepGraph> plan_step(const Plan& plan) {
  const auto source = std::make_shared<const SourceText>(
      SourceText{.name = "<the plan's model>", .text = plan.inputs.model_text});
  const auto model = load_model(source, plan.inputs.model_options);
  if (!model) return tl::unexpected(model.error());
  auto graph = lower(*model, plan.inputs.lowering);
  if (!graph) return graph;
  const bool same_nodes = std::equal(
      graph->nodes.begin(), graph->nodes.end(), plan.nodes.begin(), plan.nodes.end(),
      [](const KernelNode& node, const PlannedNode& planned) { return node.name == planned.name; });
  const bool same_storages =
      std::equal(graph->storages.begin(), graph->storages.end(), plan.storages.begin(),
                 plan.storages.end(), [](const Storage& storage, const PlannedStorage& planned) {
                   return storage.name == planned.name;
                 });
  if (!same_nodes || !same_storages) {
    return failure("the plan's kernels are not those that its model lowers to",
                   "stowage validate says where they differ");
  }
  return graph;
}

}  // namespace stowage
