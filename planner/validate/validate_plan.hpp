// The validator: trusts nobody. It lowers the embedded description again, walks the sequence step
// by step with sets of bytes, and recounts everything from the definition in plan.hpp. It shares no
// code with the planner beyond the estimator's lowering and plan.hpp's types.
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

[[nodiscard]] PlanValidation validate_plan(const Plan& plan, WorkspaceSource& workspaces);

}  // namespace stowage
