// The placement of whoever does not swap.
#pragma once

#include "planner/assemble/assembly_options.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// The placement that keeps everything on the GPU that may be there: without pins to the CPU,
/// fetches are the inputs' alone. Every operation that is not pinned to the CPU runs on the GPU
/// with its first engine that fits in the budget beside what else is live, the smallest where none
/// does: the same choice as check's for the `stowage` runtime.
[[nodiscard]] Placement all_gpu_placement(const ResidencyProblem& problem,
                                          GpuBudget budget = GpuBudget::unlimited());

}  // namespace stowage
