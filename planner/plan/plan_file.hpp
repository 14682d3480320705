// The plan file: YAML, stable order, readable diffs. docs/plan-file.md is the format.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

[[nodiscard]] std::string write_plan(const Plan& plan);
/// write_plan's text, once read_plan has read the same plan from it: what is kept or given away is
/// made here. O(text), like reading it. Errors: the plan is larger than a plan's file may be.
/// Throws std::logic_error where it cannot be read for any other reason: a mistake of the program.
[[nodiscard]] Result<std::string> write_readable_plan(const Plan& plan);
/// Reads a plan file. Errors, with their places: not a plan, another format version, wrong types,
/// ids out of range, begin >= end (of a residence; > of a transfer). A plan that is read need not
/// be valid: validate_plan checks that.
[[nodiscard]] Result<Plan> read_plan(SourceTextPtr source);

}  // namespace stowage
