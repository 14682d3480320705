// Workspaces that save no time, by the rates at hand.
//
// Of engines that take equally long, a placement has the one that the runtime prefers if memory
// allows. Where its blocks do not pack, the engine with the smallest workspace may: a workspace is
// large, lives for one step only, and often no hole is wide enough for it. So the placement is
// packed with the smallest workspaces first, and the preferred ones come back where there is a hole
// for them.
#pragma once

#include <optional>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/packed_step.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

/// The placement with, for each operation on the GPU, the least workspace of any engine that takes
/// no longer than its own. nullopt: no engine changes. Linear.
[[nodiscard]] std::optional<Placement> with_least_workspaces(const ResidencyProblem& problem,
                                                             const Placement& placement);

/// The packed placement with, for each operation, the first engine that takes no longer than its
/// own and whose workspace has a place beside all else at its step. Nothing else changes its place.
/// `problem` is make_problem's of `step`. O(steps * what is live at once).
[[nodiscard]] PackedStep with_preferred_workspaces(const SizedStep& step,
                                                   const ResidencyProblem& problem,
                                                   PackedStep packed, GpuBudget budget);

}  // namespace stowage
