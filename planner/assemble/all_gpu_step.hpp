// The memory and the seconds of a step with everything on the GPU, as far as they are known before
// packing.
#pragma once

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/assembly_options.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct AllGpuStep {
  Bytes least_arena;   ///< what is live at once, inputs in flight included: no arena is smaller
  double seconds = 0;  ///< of the simulated step with unlimited memory
};

/// The figures of all_gpu_placement with the engines that it chooses for `budget`. `problem` is
/// make_problem's of `step`.
[[nodiscard]] AllGpuStep all_gpu_step(const SizedStep& step, const ResidencyProblem& problem,
                                      GpuBudget budget = GpuBudget::unlimited());

}  // namespace stowage
