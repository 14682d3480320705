// What pins leave of an item on the GPU where all else stays there, and of the groups that may run
// again.
#pragma once

#include <vector>

#include "estimator/base/step_range.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

/// The steps at which an item that may stay on the GPU is there: between two operations on the GPU,
/// as long as nothing on the CPU writes it. Ascending; of what wraps, round the step's end too.
[[nodiscard]] std::vector<StepRange> lives_on_gpu(const ResidencyProblem& problem,
                                                  const Item& item);

/// Without those that have a kernel on the CPU, or make what is pinned to the GPU, which stays
/// there, or nothing that backward reads but what is pinned to the CPU, which takes no more of the
/// GPU's memory than its touches do.
[[nodiscard]] RerunGroups worth_running_again(RerunGroups groups, const StepGraph& step,
                                              const StepPins& pins);

}  // namespace stowage
