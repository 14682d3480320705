// below_floor: the error for a budget that no placement keeps within. It names the operation that
// exceeds the budget and what is on the GPU then.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Names the operation at the floor's step and the bytes that are on the GPU while it runs. Its
/// notes say what takes these bytes, largest first: the operation's items, least workspace and
/// temporaries, and what is pinned to stay beside it. Precondition: `floor` is
/// memory_floor(problem) and above the budget.
[[nodiscard]] Diagnostic below_floor(const ResidencyProblem& problem, GpuBudget budget,
                                     const Floor& floor);

}  // namespace stowage
