// Workspaces that buy no time, by the rates at hand.
//
// Of engines that take equally long a placement has the one that the runtime prefers, as long as
// the memory reaches. Where its blocks do not pack, the one with the smallest workspace may: a
// workspace is large, lives for one step only, and is often what no hole is wide enough for. So the
// placement is packed without those, and gets back what there is a hole for.
#pragma once

#include <optional>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/packed_step.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

/// Each operation on the GPU with the least workspace of any engine that takes no longer than its
/// own. nullopt: no engine changes. Linear.
[[nodiscard]] std::optional<Placement> with_least_workspaces(const ResidencyProblem& problem,
                                                             const Placement& placement);

/// The packed placement with each operation's first engine that takes no longer than its own and
/// whose workspace has room beside all else at its step. Nothing else changes its place.
/// `problem` is make_problem's of `step`. O(steps * what is live at once).
[[nodiscard]] PackedStep with_preferred_workspaces(const SizedStep& step,
                                                   const ResidencyProblem& problem,
                                                   PackedStep packed, GpuBudget budget);

}  // namespace stowage
