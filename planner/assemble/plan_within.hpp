// plan_within: a placement solved for, assembled and packed until its arena is within a budget.
#pragma once

#include "estimator/memory/sized_step.hpp"
#include "planner/plan/plan.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {

struct FittedPlan {
  Plan plan;  ///< as assemble_plan leaves it
  Placement placement;
  Solution solution;       ///< at the budget: its bounds are the plan's
  bool at_budget = false;  ///< the plan's placement costs no more than that solution's
  int solves = 1;          ///< how often the problem was solved
};

/// Of packings that decide whether there is a plan.
inline constexpr int last_packing_effort = 20;

/// `objective` is what is solved, `timing` the same operations and items with the seconds that the
/// copies are placed by. Where the arena is larger than the budget though packed with effort,
/// workspaces that buy no time are left out (spare_workspaces.hpp); where it still is, the steps at
/// which blocks reach beyond it are allowed that much less and the problem is solved again; where
/// that does not help in a few rounds, all steps are, and at last the least that any placement
/// keeps is packed. Where that loses much, what did not pack is squeezed (squeeze.hpp). Without
/// `branches` less is tried, and nothing once there is a plan. Errors: solve's; the arena stays
/// above the budget.
[[nodiscard]] Result<FittedPlan> plan_within(const SizedStep& step,
                                             const ResidencyProblem& objective,
                                             const ResidencyProblem& timing,
                                             const SolveOptions& options);

}  // namespace stowage
