// Copy windows: memory for copies as part of the problem that is solved.
//
// A placement frees an item's memory at once where it leaves the GPU and takes it again at once
// where it comes back, but a copy needs the memory for as long as it is under way. Where the budget
// is full, no copy could run beside compute. So a gap of an item gets two more touches: one at the
// step at which a download of what was written would be over, one at the step at which an upload
// that hides behind compute would begin. These touches read and cost nothing. The gap between them
// can be dropped, and its memory is what a swap really frees.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct WindowedProblem {
  ResidencyProblem problem;
  /// By item: the new indices of the original's touches.
  std::vector<std::vector<std::int32_t>> touch;
};

/// Adds windows as long as `scale` times the copies' own seconds (more than 1, since copies wait
/// for each other). Windows are shorter where the gap is, and absent where the budget leaves no
/// memory for them beside what an operation needs, or where the operation may run on the CPU.
/// O(touches * log(steps)).
[[nodiscard]] WindowedProblem with_copy_windows(const ResidencyProblem& problem, GpuBudget budget,
                                                double scale);

/// Translates a placement back to the original problem: a gap is resident where all its parts were.
/// It costs no more and takes no more memory. Precondition: `placement` is consistent with
/// `windowed.problem`.
[[nodiscard]] Placement without_windows(const ResidencyProblem& problem,
                                        const WindowedProblem& windowed,
                                        const Placement& placement);

}  // namespace stowage
