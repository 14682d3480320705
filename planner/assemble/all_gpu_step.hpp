// What a step takes with everything on the GPU, as far as that is known before anything is packed.
#pragma once

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/assembly_options.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct AllGpuStep {
  Bytes least_arena;   ///< what is live at once, inputs in flight included: no arena is smaller
  double seconds = 0;  ///< of the simulated step, as if the GPU had room for everything
};

/// Of all_gpu_placement's with engines for `budget`. `problem` is make_problem's of `step`.
[[nodiscard]] AllGpuStep all_gpu_step(const SizedStep& step, const ResidencyProblem& problem,
                                      GpuBudget budget = GpuBudget::unlimited());

}  // namespace stowage
