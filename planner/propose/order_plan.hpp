// The step in another order, with a lower peak (estimator/order, rewrite/node_order.hpp).
#pragma once

#include <optional>

#include "planner/propose/step_plans.hpp"

namespace stowage {

/// "order". None: no order is found with which the arena of everything on the GPU is smaller, the
/// kernels are not our own executor's, the step has an order already, no plan.
[[nodiscard]] std::optional<Plan> order_plan(const Planning& planning, const StepCase& whole,
                                             Effort effort = Effort::full);

}  // namespace stowage
