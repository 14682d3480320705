// Copy windows: room for copies as part of what is solved.
//
// A placement frees an item's memory at once where it leaves and takes it again at once where it
// comes back; a copy needs it for as long as it is under way. Where the budget is full, no copy can
// then run beside compute. So a gap of an item gets two touches more: one at the step at which a
// download of what was written would be over, one at the step at which an upload that hides behind
// compute would begin. They read and cost nothing; what lies between them is the gap that can be
// dropped, and its memory is what a swap really frees.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct WindowedProblem {
  ResidencyProblem problem;
  std::vector<std::vector<std::int32_t>> touch;  ///< by item: where the original's touches are now
};

/// Windows as long as `scale` times the copies' own seconds (more than 1: copies wait for each
/// other), shorter where a gap is, none where no memory is left for them beside what an operation
/// needs or where the operation may run on the CPU. O(touches * log(steps)).
[[nodiscard]] WindowedProblem with_copy_windows(const ResidencyProblem& problem, GpuBudget budget,
                                                double scale);

/// The original's placement: resident in a gap where it was in all parts of it. It costs no more
/// and takes no more memory. Precondition: `placement` is consistent with `windowed.problem`.
[[nodiscard]] Placement without_windows(const ResidencyProblem& problem,
                                        const WindowedProblem& windowed,
                                        const Placement& placement);

}  // namespace stowage
