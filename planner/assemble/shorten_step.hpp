// shorten_step: other placements within the budget, for what a user waits for.
//
// The cheapest placement minimises the sum of all lanes and fills the budget to the brim: copies
// then wait for each other, or for room. So variations of the problem are solved as well (windows
// for copies, lanes weighted by how busy they are, less memory), and placements by the rules that
// people and papers swap by (swap_policies.hpp); from the most promising of them a local search on
// the simulated step goes on (stall_search.hpp). Each is assembled within the whole budget, and the
// shortest simulated step wins.
#pragma once

#include <functional>

#include "planner/assemble/plan_within.hpp"
#include "planner/solve/lane_balance.hpp"

namespace stowage {

inline constexpr std::size_t all_variations = 8, quick_variations = 2;

/// What is known of the step that nobody undercuts.
struct StepTarget {
  LaneBalance balance;         ///< of the problem within the budget
  double all_gpu_seconds = 0;  ///< the step without a limit on memory
  std::size_t most_variations = all_variations;
  std::function<bool(const PlanTotals&)> accepts = {};  ///< which plans may be; none: all
};

/// `plan` or one with a shorter step; its `at_budget` then says that its placement is not the
/// cheapest one. The rules are tried in any case, the rest ends early where the step is within a
/// hundredth of the bound or of the step without a limit, and once `options` are cancelled or their
/// time is over. `problem` is make_problem's of `step`.
[[nodiscard]] FittedPlan shorten_step(const SizedStep& step, const ResidencyProblem& problem,
                                      const SolveOptions& options, const StepTarget& target,
                                      FittedPlan plan);

}  // namespace stowage
