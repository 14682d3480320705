// shorten_step: searches other placements within the budget for one with a shorter step, which is
// what a user waits for.
//
// The cheapest placement minimises the sum of all lanes and fills the whole budget: copies then
// wait for each other, or for memory. So variations of the problem are solved as well (windows for
// copies, lanes weighted by how busy they are, less memory), and placements by the rules that
// people and papers swap by are tried (swap_policies.hpp). From the one with the shortest forecast
// step a local search on the simulated step goes on (stall_search.hpp). Each is assembled within
// the whole budget, and the shortest simulated step wins.
#pragma once

#include <functional>

#include "planner/assemble/plan_within.hpp"
#include "planner/solve/lane_balance.hpp"

namespace stowage {

inline constexpr std::size_t all_variations = 8, quick_variations = 2;

/// Bounds on the step that no placement can beat, and the extent of the search.
struct StepTarget {
  LaneBalance balance;         ///< of the problem within the budget
  double all_gpu_seconds = 0;  ///< the step with unlimited memory
  std::size_t most_variations = all_variations;
  std::function<bool(const PlanTotals&)> accepts = {};  ///< which plans are allowed; empty: all
};

/// `plan` or a plan with a shorter step, whose `at_budget` then says that its placement is not the
/// cheapest one. The rules are always tried. The rest ends early where the step is within a
/// hundredth of the bound or of the step with unlimited memory, and once the work of
/// `options` is over. `problem` is make_problem's of `step`.
[[nodiscard]] FittedPlan shorten_step(const SizedStep& step, const ResidencyProblem& problem,
                                      const SolveOptions& options, const StepTarget& target,
                                      FittedPlan plan);

}  // namespace stowage
