// A plan that a command was given: read, and found to be one.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// `argument`: a file, or "-" for stdin. Errors: it cannot be read; it holds something else; it is
/// no plan that reads well, or its tables are not those of its step (check_structure).
[[nodiscard]] Result<Plan> requested_plan(const std::string& argument);

}  // namespace stowage
