// The first document of a plan file: name, inputs, totals, remarks and the description itself.
// Internal to planner/plan/read_plan.cpp.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// The plan without its tables. All mistakes, with their places.
[[nodiscard]] Result<Plan> read_plan_header(SourceTextPtr source);

}  // namespace stowage
