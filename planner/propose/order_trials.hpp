// order_trials: the step in another order, with a lower peak (estimator/order,
// rewrite/node_order.hpp).
#pragma once

#include "planner/propose/trials.hpp"

namespace stowage {

/// Whether the kernels are those of our own executor and the step has no order yet.
[[nodiscard]] bool may_be_reordered(const StepCase& whole);

/// The trial "order". None: no order makes the arena of everything on the GPU smaller, or
/// the step may not be reordered.
[[nodiscard]] Trials order_trials(const Planning& planning, const StepCase& whole);

}  // namespace stowage
