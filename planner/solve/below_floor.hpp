// Why no placement keeps within a budget: the operation that exceeds it, and what is there then.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// The operation at the floor's step, the bytes that are on the GPU while it runs and, as notes,
/// what takes them, largest first: its items, least workspace and temporaries, and what is pinned
/// to stay beside it. Precondition: `floor` is memory_floor(problem) and above the budget.
[[nodiscard]] Diagnostic below_floor(const ResidencyProblem& problem, GpuBudget budget,
                                     const Floor& floor);

}  // namespace stowage
