// From a placement to the executed step: transfers with their places, residences with their
// offsets in the two arenas, and what that sums to.
#pragma once

#include "estimator/arena/arena.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/assembly_options.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// The arena is larger than the budget only where what the placement itself keeps there is (in
/// 256-byte granules, packed): copies then hide behind compute as far as the places allow.
/// Fills step, nodes, residences, transfers, and of the totals the peaks, the arena and its
/// bound, the bytes over PCIe and step_seconds. The rest is the caller's.
/// Preconditions: `problem` is make_problem's of `step`; evaluate() calls the placement consistent.
[[nodiscard]] Plan assemble_plan(const SizedStep& step, const ResidencyProblem& problem,
                                 const Placement& placement, const AssemblyOptions& options);

/// What is known of the arena of what the placement keeps, without packing it. Preconditions: as
/// assemble_plan's.
[[nodiscard]] ArenaBound bound_placement(const SizedStep& step, const ResidencyProblem& problem,
                                         const Placement& placement, GpuBudget budget);

}  // namespace stowage
