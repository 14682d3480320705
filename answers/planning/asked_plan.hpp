// A plan that a question names: read, and found to be one.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// `name`: a file, or "-" for stdin. Errors: it cannot be read; it holds something else; it is no
/// plan that reads well.
[[nodiscard]] Result<Plan> read_plan_file(const std::string& name);

/// As above, of its text.
[[nodiscard]] Result<Plan> read_plan_text(SourceTextPtr text);

/// As read_plan_file. Errors also: its tables are not those of its step (check_structure).
[[nodiscard]] Result<Plan> read_asked_plan(const std::string& name);

}  // namespace stowage
