// reduce_stalls: local search on the simulated step.
//
// Where the step waits for a copy, it waits for that copy and for those before it without a pause
// on its lane. Each of them is avoided in turn: its storage stays on the GPU, and what costs least
// to move makes room. In that cost a copy counts in full only at times at which the step waits for
// its lane. A change that shortens the simulated step is kept, until no change does.
#pragma once

#include "planner/assemble/placed_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct StallSearchOptions {
  GpuBudget budget;
  int most_moves = 200;        ///< changes tried: each is scheduled and simulated
  WorkBudget* work = nullptr;  ///< no change is tried once it is over; null: no limit
};

/// A placement with a shorter step, by a simulation whose copies need not pack; `start` if none is
/// found. Preconditions: `start` keeps within the budget; `problem` is make_problem's of `step`.
/// Deterministic.
[[nodiscard]] Placement reduce_stalls(const SizedStep& step, const ResidencyProblem& problem,
                                      Placement start, const StallSearchOptions& options);

}  // namespace stowage
