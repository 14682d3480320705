// plan_within: solves for a placement, assembles and packs it, until the arena is within a budget.
#pragma once

#include "estimator/memory/sized_step.hpp"
#include "planner/plan/plan.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {

struct FittedPlan {
  Plan plan;  ///< as assemble_plan leaves it
  Placement placement;
  Solution solution;       ///< within the budget: its bounds are those of the plan
  bool at_budget = false;  ///< the plan's placement costs no more than that solution's
  int solves = 1;          ///< how often the problem was solved
};

/// The effort of packings that decide whether there is a plan.
inline constexpr int last_packing_effort = 20;

/// `objective` is the problem that is solved; `timing` has the same operations and items with the
/// seconds by which copies are scheduled. If the arena exceeds the budget though packed with
/// effort, plan_within goes on in this order:
///   - It leaves out workspaces that save no time (spare_workspaces.hpp).
///   - It lowers the limits of the steps at which blocks reach beyond the budget, and solves again.
///   - After a few rounds it lowers the limits of all steps, and at last packs the least that any
///     placement keeps.
///   - Where the plan found costs much more than the solution, it packs rejected placements by
///     eviction (pack_by_eviction.hpp).
/// Without `branches` less is tried, and nothing once there is a plan. Errors: solve's; the arena
/// stays above the budget.
[[nodiscard]] Result<FittedPlan> plan_within(const SizedStep& step,
                                             const ResidencyProblem& objective,
                                             const ResidencyProblem& timing,
                                             const SolveOptions& options);

}  // namespace stowage
