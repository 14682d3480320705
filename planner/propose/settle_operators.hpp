// settle_operators: decides which operators run on the CPU where what lies between two operators on
// the GPU may not leave it.
//
// "Resident where both its ends are on the GPU" is no minimum cut: memory is paid where both are on
// the GPU, and a cut can only reward that. So first an open problem is solved, in which such gaps
// may be dropped; its bound holds for all plans. Then the devices of that solution are fixed, and
// with them what stays. Where that exceeds the budget at some steps, the limits of these steps are
// lowered and the problem is solved again.
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
  BranchTree proof;  ///< proof of the bound
};

/// `open` is the problem in which all gaps beside an operation that may be on the CPU may be
/// dropped. `settled` gives the same problem with the operations on the given devices, and what
/// then has to stay. At most 20 solves; if none of them fits, all operations that may be on the CPU
/// are. nullopt: the budget is below the floor.
[[nodiscard]] std::optional<SettledOperators> settle_operators(
    const ResidencyProblem& open,
    const std::function<ResidencyProblem(const std::vector<Device>&)>& settled,
    const SolveOptions& options);

}  // namespace stowage
