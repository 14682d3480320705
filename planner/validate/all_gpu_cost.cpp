#include "planner/validate/all_gpu_cost.hpp"

#include <algorithm>

#include "planner/bounds/priced_bound.hpp"
#include "planner/bounds/tree_bound.hpp"
#include "planner/validate/stated_problem.hpp"

namespace stowage {

namespace {

std::vector<BoundScope> possible_scopes(const Plan& plan) {
  if (plan.certificate && plan.certificate->cost) return {plan.certificate->cost->scope};
  BoundScope scope{.keep_activations = !plan.levers.activations && !plan.levers.saved,
                   .keep_unsaved = !plan.levers.activations && plan.levers.saved,
                   .keep_weights = !plan.levers.weights,
                   .keep_state = !plan.levers.optimizer};
  const bool pins_computation = plan.pinned == Pinned::computation;
  std::vector<BoundScope> scopes;
  for (const bool updates : {false, true}) {
    if (plan.levers.optimizer ? updates && pins_computation : !updates) continue;
    for (const bool compute : {false, true}) {
      if (!compute && (!plan.levers.operators || pins_computation)) continue;
      scope.compute_on_gpu = compute;
      scope.updates_on_gpu = updates;
      scopes.push_back(scope);
    }
  }
  return scopes;
}

}  // namespace

std::optional<std::vector<double>> all_gpu_costs(const Plan& plan) {
  std::vector<double> costs;
  std::int64_t work = most_cut_work;
  for (const BoundScope& scope : possible_scopes(plan)) {
    const BoundProblem problem = stated_problem(plan, scope, {});
    if (!overflow_reason(problem).empty()) return std::nullopt;
    const std::optional<double> cost = priced_bound(problem, sides_of(problem), {}, {}, work);
    if (!cost) return std::nullopt;
    if (std::ranges::find(costs, *cost) == costs.end()) costs.push_back(*cost);
  }
  return costs;
}

}  // namespace stowage
