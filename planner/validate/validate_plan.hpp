// The validator: trusts nobody. It walks the plan's own step with sets of bytes and recounts
// everything from the definition in plan.hpp. It lowers nothing, and shares no code with the
// planner beyond plan.hpp's types. Bounds are proved again from the plan's certificate, if it has
// one.
#pragma once

#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct Check {
  std::string name;  ///< "inputs present", "arena overlap", "budget", ...
  bool passed = false;
  std::string
      detail;  ///< what was counted, or the first few violations with node and storage names
};

struct PlanValidation {
  std::vector<Check> checks;
  [[nodiscard]] bool passed() const;
};

/// The tables alone: machine, ids, ranges, orders, sizes. Nothing else may be asked of a plan that
/// fails it.
[[nodiscard]] Check check_structure(const Plan& plan);

/// The plan by itself, and its workspaces against what `workspaces` answers.
[[nodiscard]] PlanValidation validate_plan(const Plan& plan, WorkspaceSource& workspaces);

/// "source": whether the description in the plan still lowers to the plan's step. It may not in
/// another version of the program, and the plan is valid all the same.
[[nodiscard]] Check compare_with_source(const Plan& plan);

}  // namespace stowage
