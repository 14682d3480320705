// stated_problem: what a bound is about, stated from the plan alone: its step, machine and pins,
// and of its certificate the scope and the least workspaces.
//
// docs/planner.md has the definition ("The problem"); the planner's own statement of it
// (planner/problem) is not used here, nor is anything that the plan decides.
#pragma once

#include <string>

#include "planner/bounds/bound_problem.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// What a second of each lane counts; `bytes`: copies count their bytes, and nothing else counts.
struct CostRule {
  double gpu = 1, cpu = 1, uploads = 1, downloads = 1;
  bool bytes = false;
};

[[nodiscard]] BoundProblem stated_problem(const Plan& plan, const BoundScope& scope,
                                          const CostRule& rule);

/// The first thing in the plan that the scope does not allow, in words; "": the bound is of plans
/// like this one.
[[nodiscard]] std::string outside_scope(const Plan& plan, const BoundScope& scope);

/// "plans that compute on the GPU and keep weights there".
[[nodiscard]] std::string scope_in_words(const BoundScope& scope);

}  // namespace stowage
