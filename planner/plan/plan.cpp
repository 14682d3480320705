#include "planner/plan/plan.hpp"

namespace stowage {

std::string_view to_string(Pinned pinned) {
  switch (pinned) {
    case Pinned::nothing:
      return "nothing";
    case Pinned::computation:
      return "computation";
    case Pinned::all_nodes:
      return "all nodes";
  }
  return "nothing";
}

std::string_view to_string(Minimised minimised) {
  return minimised == Minimised::bytes ? "bytes" : "seconds";
}

bool PlanTotals::cost_is_least() const {
  return cost_seconds - cost_lower_bound_seconds <= optimality_tolerance * cost_seconds;
}

double PlanTotals::gap() const {
  return cost_seconds > 0 ? (cost_seconds - cost_lower_bound_seconds) / cost_seconds : 0;
}

double PlanTotals::overhead_gap() const {
  const double overhead = cost_seconds - all_gpu_cost_seconds;
  // A plan that costs no more than all-GPU has no overhead. The tolerance is for the rounding of
  // the cuts, a nanosecond a node.
  if (overhead <= 1e-5 * cost_seconds) return 0;
  return (cost_seconds - cost_lower_bound_seconds) / overhead;
}

std::optional<double> PlanTotals::step_gap() const {
  if (!step_lower_bound_seconds) return std::nullopt;
  return step_seconds > 0 ? (step_seconds - *step_lower_bound_seconds) / step_seconds : 0;
}

WholeBatch whole_batch(const Plan& plan) {
  return whole_batch_of(plan.step.batch, plan.step.graph->settings.micro_batches);
}

StepRange window_of(const Plan& plan, NodeId node) {
  const StepRange& window = plan.nodes[node.index()].window;
  return window.empty() ? StepRange::single(node.value) : window;
}

WorkspaceOrigin workspace_origin(const Plan& plan) {
  WorkspaceOrigin origin = WorkspaceOrigin::none;
  for (const PlannedNode& node : plan.nodes) {
    WorkspaceOrigin of_node = WorkspaceOrigin::none;
    if (node.engine.starts_with("cudnn")) of_node = WorkspaceOrigin::cudnn;
    if (node.engine.starts_with("rule")) of_node = WorkspaceOrigin::rule;
    if (of_node == WorkspaceOrigin::none) continue;
    if (origin != WorkspaceOrigin::none && origin != of_node) return WorkspaceOrigin::mixed;
    origin = of_node;
  }
  return origin;
}

}  // namespace stowage
