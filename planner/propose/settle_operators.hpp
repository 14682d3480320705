// settle_operators: which operators run on the CPU where what lies between two on the GPU may not
// leave it.
//
// "Resident where both its ends are on the GPU" is no minimum cut: memory is paid where both are,
// and a cut can only reward that. So the problem that is solved lets such gaps go, which bounds all
// plans; then its devices are settled, and with them what stays. Where that is over the budget at
// some steps, these are allowed less and the problem is solved again.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/problem/residency_problem.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {

struct SettledOperators {
  std::vector<Device> device;           ///< by operation
  double cost_lower_bound_seconds = 0;  ///< of any devices
  double all_gpu_cost_seconds = 0;
  BranchTree proof;  ///< of the bound
};

/// `open` lets all gaps go that lie beside an operation that may be on the CPU; `settled` is the
/// same with the operations where they are said to be, and what then has to stay. At most 20
/// solves; if none of these fits, all that may be on the CPU is. nullopt: the budget is below the
/// floor.
[[nodiscard]] std::optional<SettledOperators> settle_operators(
    const ResidencyProblem& open,
    const std::function<ResidencyProblem(const std::vector<Device>&)>& settled,
    const SolveOptions& options);

}  // namespace stowage
