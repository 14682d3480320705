// Whether all of a plan's kernels exist. Asked before anything is allocated.
#pragma once

#include <string>
#include <vector>

#include "estimator/step/kernel_table.hpp"
#include "estimator/step/step_graph.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// One text for each kind of call that has no implementation, with the first node that makes it:
/// "'encoder.forward' calls rnn_forward in bfloat16, which the host kernels do not have". `gpu`:
/// whose kernels run the nodes on the GPU. The host must have kernels for all nodes, since it runs
/// the reference. Precondition: check_structure(plan) passed.
[[nodiscard]] std::vector<std::string> missing_kernels(const Plan& plan, KernelDevice gpu);

}  // namespace stowage
