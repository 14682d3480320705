// assemble_plan: turns a placement into the executed step: transfers with their places, residences
// with their offsets in the arenas, and the totals of these.
#pragma once

#include "estimator/arena/arena.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/assemble/assembly_options.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Copies hide behind compute as far as the places in the arena allow. The arena exceeds the budget
/// only where the blocks that the placement itself keeps exceed it (in 256-byte granules, packed).
/// Fills step, nodes, residences, transfers, and of the totals the peaks, the arena and its bound,
/// the bytes over PCIe and step_seconds. The caller fills the rest. Preconditions: `problem` is
/// make_problem's of `step`; evaluate() calls the placement consistent.
[[nodiscard]] Plan assemble_plan(const SizedStep& step, const ResidencyProblem& problem,
                                 const Placement& placement, const AssemblyOptions& options);

/// A bound on the arena of what the placement keeps, without packing it. Preconditions: as
/// assemble_plan's.
[[nodiscard]] ArenaBound bound_placement(const SizedStep& step, const ResidencyProblem& problem,
                                         const Placement& placement, GpuBudget budget);

}  // namespace stowage
