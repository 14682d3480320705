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
  bool at_budget = false;  ///< the plan's placement is that solution's, not one of a lower live sum
};

/// `objective` is what is solved, `timing` the same operations and items with the seconds that the
/// copies are placed by. If the packed arena is larger than the budget, the live sum is lowered and
/// the problem solved again.
/// Errors: solve's; the arena stays above the budget.
[[nodiscard]] Result<FittedPlan> plan_within(const SizedStep& step,
                                             const ResidencyProblem& objective,
                                             const ResidencyProblem& timing,
                                             const SolveOptions& options);

}  // namespace stowage
