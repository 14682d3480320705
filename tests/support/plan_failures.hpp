// The failed checks of a plan, its workspaces held against a step's engines, one a line: "name:
// detail".
#pragma once

#include <string>
#include <vector>

#include "planner/validate/checks.hpp"

namespace stowage {

inline std::string failures(const Plan& plan, const SizedStep& step) {
  std::vector<Check> checks = check_plan(plan);
  if (checks.front().passed) checks.push_back(check_workspaces(plan, step.engines));
  std::string failed;
  for (const Check& check : checks) {
    if (!check.passed) failed += check.name + ": " + check.detail + "\n";
  }
  return failed;
}

}  // namespace stowage
