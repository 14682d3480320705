// What is wrong with a plan that the planner made: the failed checks of the validator, one a line,
// and whether its file reads back as another plan. Empty: nothing.
#pragma once

#include <memory>
#include <string>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage::testing {

inline std::string plan_mistakes(const Plan& plan) {
  const auto workspaces = rule_workspace_source(8.6);
  std::string mistakes;
  for (const Check& check : validate_plan(plan, *workspaces).checks) {
    if (!check.passed) mistakes += check.name + ": " + check.detail + "\n";
  }
  const std::string text = write_plan(plan);
  const auto read = read_plan(std::make_shared<const SourceText>(SourceText{"plan", text}));
  if (!read) return mistakes + render(read.error());
  if (write_plan(*read) != text || !(*read->step.graph == *plan.step.graph)) {
    mistakes += "the file reads back as another plan\n";
  }
  return mistakes;
}

}  // namespace stowage::testing
