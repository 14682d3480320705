#include "planner/assemble/stall_search.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/swap_policies.hpp"
#include "planner/propose/step_case.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {
namespace {

StepCase case_of_budget(Bytes budget) {
  PlanRequest request = testing::small_request(budget);
  request.levers.operators = false;
  const auto workspaces = rule_workspace_source(8.6);
  const ProposalOptions options;
  const Planning planning(request, *workspaces, options);
  return make_case(planning, planning.document.graph).value();
}

double step_of(const StepCase& of, const Placement& placement, Bytes budget) {
  return widest_step_seconds(PlacedStep(of.step, of.placed, placement), budget);
}

}  // namespace

TEST_CASE("moves shorten the step of what swaps by a rule, within the budget") {
  const StepCase roomy = case_of_budget(64_MiB);
  const Bytes whole = evaluate(roomy.on_gpu, all_gpu_placement(roomy.on_gpu)).peak;
  int shorter = 0, looked_at = 0;
  for (const std::int64_t percent : {90, 75, 60}) {
    const Bytes budget(whole.count() / 100 * percent);
    const StepCase of = case_of_budget(budget);
    for (const SwapPolicy policy : swap_policies) {
      const auto start = placed_by(policy, of.step, of.placed, budget);
      if (!start) continue;
      CAPTURE(percent);
      CAPTURE(to_string(policy));
      ++looked_at;
      const Placement moved = reduce_stalls(of.step, of.placed, *start, {.budget = budget});
      const Evaluation evaluation = evaluate(of.placed, moved);
      CHECK(evaluation.inconsistency == "");
      CHECK(evaluation.peak <= budget);
      const double before = step_of(of, *start, budget), after = step_of(of, moved, budget);
      CHECK(after <= before);
      if (after < before) ++shorter;
      CHECK((moved == *start) == (after == before));
      CHECK(reduce_stalls(of.step, of.placed, *start, {.budget = budget}) == moved);
    }
  }
  CHECK(looked_at > 10);
  CHECK(shorter > looked_at / 4);
}

TEST_CASE("without moves, or stopped, the start stays") {
  const StepCase roomy = case_of_budget(64_MiB);
  const Bytes whole = evaluate(roomy.on_gpu, all_gpu_placement(roomy.on_gpu)).peak;
  const Bytes budget(whole.count() / 100 * 90);
  const StepCase of = case_of_budget(budget);
  const Placement start = placed_by(SwapPolicy::swap_all, of.step, of.placed, budget).value();
  CHECK(reduce_stalls(of.step, of.placed, start, {.budget = budget, .most_moves = 0}) == start);
  WorkBudget none(Work{0});
  const StallSearchOptions stopped{.budget = budget, .work = &none};
  CHECK(reduce_stalls(of.step, of.placed, start, stopped) == start);
  CHECK_FALSE(reduce_stalls(of.step, of.placed, start, {.budget = budget}) == start);
}

}  // namespace stowage
