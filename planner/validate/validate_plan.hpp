// validate_plan: the validator, which trusts nothing in a plan. It walks the plan's own step with
// sets of bytes and recounts everything from the definition in plan.hpp. It lowers nothing, and
// shares no code with the planner beyond plan.hpp's types. Bounds are proved again from the plan's
// certificate, if it has one.
#pragma once

#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct Check {
  std::string name;  ///< "inputs present", "arena overlap", "budget", ...
  bool passed = false;
  /// What was counted, or the first few violations with the names of nodes and storages.
  std::string detail;
};

struct PlanValidation {
  std::vector<Check> checks;
  [[nodiscard]] bool passed() const;
};

/// Checks the tables alone: machine, ids, ranges, orders, sizes. Precondition of every other check.
[[nodiscard]] Check check_structure(const Plan& plan);

/// Checks the plan by itself, and its workspaces against the answers of `workspaces`.
[[nodiscard]] PlanValidation validate_plan(const Plan& plan, WorkspaceSource& workspaces);

/// The check "source": whether the description in the plan still lowers to the plan's step. In
/// another version of the program it may not, and the plan is valid all the same.
[[nodiscard]] Check compare_with_source(const Plan& plan);

}  // namespace stowage
