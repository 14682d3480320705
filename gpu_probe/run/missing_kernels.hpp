// Whether a plan's kernels can be run at all: looked at before anything is allocated.
#pragma once

#include <string>
#include <vector>

#include "estimator/step/kernel_table.hpp"
#include "estimator/step/step_graph.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// One text for each kind of call that has no implementation, with the first node that makes it:
/// "'encoder.forward' calls rnn_forward in bfloat16, which the host kernels do not have".
/// `gpu` is whose kernels run the nodes on the GPU. All nodes must run on the host as well, where
/// the step is run that the plan's is compared with. Precondition: check_structure(plan) passed.
[[nodiscard]] std::vector<std::string> missing_kernels(const Plan& plan, KernelDevice gpu);

}  // namespace stowage
