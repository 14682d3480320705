// frontier: the shortest step at several budgets, from the least that the step can be planned in to
// the arena in which everything stays on the GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

struct FrontierPoint {
  GpuBudget budget;
  std::string plan;  ///< the proposal with the shortest step
  double step_seconds = 0;
  std::optional<double> step_lower_bound_seconds;  ///< of that proposal's step
  Bytes pcie;                                      ///< both directions
};

/// At most `points` budgets, evenly spaced and ascending; the request's own budget is ignored. At
/// each budget the step as it is, early updates and recomputation are searched for a short time;
/// budgets without a plan are left out. A plan of a smaller budget is also one of a larger budget,
/// so that the step never grows. Cancelled: the points so far. Errors: the step cannot be sized,
/// pins do not apply.
[[nodiscard]] Result<std::vector<FrontierPoint>> frontier(const PlanRequest& request,
                                                          WorkspaceSource& workspaces,
                                                          const ProposalOptions& options,
                                                          int points = 12);

}  // namespace stowage
