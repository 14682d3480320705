// The failed checks of a plan against a given step, one a line: "name: detail".
#pragma once

#include <string>

#include "planner/validate/checks.hpp"

namespace stowage {

inline std::string failures(const Plan& plan, const SizedStep& step) {
  const Check structure = check_structure(plan);
  if (!structure.passed) return structure.name + ": " + structure.detail + "\n";
  std::string failed;
  for (const Check& check : check_against_step(plan, step)) {
    if (!check.passed) failed += check.name + ": " + check.detail + "\n";
  }
  return failed;
}

}  // namespace stowage
