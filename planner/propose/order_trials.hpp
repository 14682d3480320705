// The step in another order, with a lower peak (estimator/order, rewrite/node_order.hpp).
#pragma once

#include "planner/propose/trials.hpp"

namespace stowage {

/// "order". None: no order is found with which the arena of everything on the GPU is smaller, the
/// kernels are not our own executor's, the step has an order already.
[[nodiscard]] Trials order_trials(const Planning& planning, const StepCase& whole);

}  // namespace stowage
