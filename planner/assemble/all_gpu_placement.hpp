// The placement without swapping: everything stays on the GPU.
#pragma once

#include "planner/assemble/assembly_options.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Keeps everything on the GPU that may be there; without pins to the CPU only inputs are fetched.
/// Every operation that is not pinned to the CPU runs on the GPU, with its first engine whose
/// workspace fits in the budget beside what else is live, or with the smallest engine if none fits.
/// That is the choice of check for the `stowage` runtime.
[[nodiscard]] Placement all_gpu_placement(const ResidencyProblem& problem,
                                          GpuBudget budget = GpuBudget::unlimited());

}  // namespace stowage
