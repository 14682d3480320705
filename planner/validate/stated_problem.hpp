// stated_problem: the problem of a bound, stated from the plan alone: from its step, machine and
// pins, and from the scope and the least workspaces of its certificate.
//
// docs/planner.md has the definition ("The problem"). The planner's own statement of it
// (planner/problem) is not used here, nor is anything that the plan decides.
#pragma once

#include <string>

#include "planner/bounds/bound_problem.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// The weight of a second on each lane; with `bytes` copies count their bytes, and nothing else
/// counts.
struct CostRule {
  double gpu = 1, cpu = 1, uploads = 1, downloads = 1;
  bool bytes = false;
};

/// Of a plan without a certificate: with sizes that are not rounded up to granules, and no least
/// workspaces.
[[nodiscard]] BoundProblem stated_problem(const Plan& plan, const BoundScope& scope,
                                          const CostRule& rule);

/// The first thing in the plan that the scope does not allow, in words; "": the plan is within the
/// scope.
[[nodiscard]] std::string outside_scope(const Plan& plan, const BoundScope& scope);

/// "plans that compute on the GPU and keep weights there".
[[nodiscard]] std::string scope_in_words(const BoundScope& scope);

}  // namespace stowage
