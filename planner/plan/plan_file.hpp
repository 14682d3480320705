// The plan file: YAML, stable order, readable diffs. docs/plan-file.md is the format.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

[[nodiscard]] std::string write_plan(const Plan& plan);
/// Reads a plan file. Errors, with their places: not a plan, another format version, wrong types,
/// ids out of range, begin >= end (of a residence; > of a transfer). A plan that is read need not
/// be valid: validate_plan checks that.
[[nodiscard]] Result<Plan> read_plan(SourceTextPtr source);

}  // namespace stowage
