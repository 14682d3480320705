// order_trials: the step in another order, with a lower peak (estimator/order,
// rewrite/node_order.hpp).
#pragma once

#include "planner/propose/trials.hpp"

namespace stowage {

/// The trial "order". None: no order makes the arena of everything on the GPU smaller, the kernels
/// are not those of our own executor, or the step has an order already.
[[nodiscard]] Trials order_trials(const Planning& planning, const StepCase& whole);

}  // namespace stowage
