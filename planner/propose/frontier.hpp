// frontier: the shortest step at several budgets, from the least that the step can be planned in to
// the arena in which everything stays on the GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

struct FrontierPoint {
  GpuBudget budget;
  std::string plan;  ///< the proposal with the shortest step
  double step_seconds = 0;
  /// No plan of that proposal's step within the budget is shorter. Where the proposals differ, it
  /// may be lower than what was proved, so that bounds never rise from budget to budget.
  std::optional<double> step_lower_bound_seconds;
  Bytes pcie;  ///< both directions
};

struct Frontier {
  std::vector<FrontierPoint> points;  ///< budgets ascending, steps and bounds descending
  int left_out = 0;  ///< budgets that were not searched, since the search was stopped
};

/// At most `points` budgets, evenly spaced and ascending; the request's own budget is ignored. Each
/// budget has an equal part of the work of `options`, in which the step as it is, early updates and
/// recomputation are searched; budgets without a plan are left out. A plan within a smaller budget
/// is also one within a larger budget, and so is each of `known`, plans of the same request, so
/// that no point has a longer step than they. Errors: the step cannot be sized, pins do not apply.
[[nodiscard]] Result<Frontier> frontier(const PlanRequest& request, WorkspaceSource& workspaces,
                                        const ProposalOptions& options,
                                        const std::vector<Plan>& known = {}, int points = 12);

}  // namespace stowage
