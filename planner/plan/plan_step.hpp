// The step that a plan is about, lowered again from the description that it embeds.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Errors: the description does not load or lower, or no longer to the plan's nodes and storages.
[[nodiscard]] Result<StepGraph> plan_step(const Plan& plan);

}  // namespace stowage
