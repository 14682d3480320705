// The effect of pins on recomputation: when an item is on the GPU, and which groups are worth a
// second run.
#pragma once

#include <vector>

#include "estimator/base/step_range.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

/// The steps at which an item is on the GPU if it stays there whenever it may: between two
/// operations on the GPU, as long as no operation on the CPU writes it in between. Ascending; where
/// the item wraps, round the step's end too.
[[nodiscard]] std::vector<StepRange> live_ranges_on_gpu(const ResidencyProblem& problem,
                                                        const Item& item);

/// The groups without those that are not worth a second run:
///   - groups with a kernel on the CPU;
///   - groups that make a storage which is pinned to the GPU, since it stays there;
///   - groups of whose results backward reads only storages that are pinned to the CPU, since these
///     take no more GPU memory than their touches do.
[[nodiscard]] RerunGroups useful_rerun_groups(RerunGroups groups, const StepGraph& step,
                                              const StepPins& pins);

}  // namespace stowage
