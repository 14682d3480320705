// stall_search: local search on the simulated step.
//
// Where the step waits for a copy, that copy and those before it without a pause on its lane are
// what it waits for. Each is spared in turn: its storage stays on the GPU, and what costs least to
// move makes room, where a copy counts in full only at times at which the step waits for its lane.
// What shortens the simulated step is kept, until nothing does.
#pragma once

#include <functional>

#include "planner/assemble/placed_step.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

struct StallSearchOptions {
  GpuBudget budget;
  int most_moves = 200;             ///< looked at: each is scheduled and simulated
  std::function<bool()> stop = {};  ///< polled before each
};

/// A placement with a shorter step, as far as a simulation tells whose copies need not pack;
/// `start` if none is found. Preconditions: `start` keeps within the budget; `problem` is
/// make_problem's of `step`. Deterministic where `stop` does not end it.
[[nodiscard]] Placement less_stalled(const SizedStep& step, const ResidencyProblem& problem,
                                     Placement start, const StallSearchOptions& options);

}  // namespace stowage
