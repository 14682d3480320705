#include "planner/assemble/swap_policies.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/propose/step_plans.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {
namespace {

struct Network {
  PlanRequest request;
  std::unique_ptr<WorkspaceSource> workspaces = rule_workspace_source(8.6);
  ProposalOptions options{.work = {60'000'000}};
  Planning planning;
  StepCase whole;

  explicit Network(Bytes budget)
      : request(without_operators(testing::small_request(budget))),
        planning(request, *workspaces, options),
        whole(make_case(planning, planning.document.graph).value()) {}
  static PlanRequest without_operators(PlanRequest request) {
    request.levers.operators = false;
    return request;
  }
  [[nodiscard]] std::optional<Placement> by(SwapPolicy policy) const {
    return placed_by(policy, whole.step, whole.placed, request.budget);
  }
};

Bytes whole_peak() {
  const Network roomy(64_MiB);
  return evaluate(roomy.whole.on_gpu, all_gpu_placement(roomy.whole.on_gpu)).peak;
}

std::vector<Bytes> swapped_sizes(const Network& network, const Placement& placement) {
  std::vector<Bytes> sizes;
  for (std::size_t i = 0; i < placement.resident.size(); ++i) {
    if (std::ranges::count(placement.resident[i], false) > 0) {
      sizes.push_back(network.whole.placed.items[i].bytes);
    }
  }
  return sizes;
}

}  // namespace

TEST_CASE("placements by rule fit, or there are none") {
  const Bytes whole = whole_peak();
  int fitting = 0;
  for (const std::int64_t percent : {100, 90, 75, 60, 40, 10}) {
    const Network network(Bytes(whole.count() / 100 * percent));
    for (const SwapPolicy policy : swap_policies) {
      CAPTURE(percent);
      CAPTURE(to_string(policy));
      const auto placement = network.by(policy);
      if (!placement) continue;
      ++fitting;
      const Evaluation evaluation = evaluate(network.whole.placed, *placement);
      CHECK(evaluation.inconsistency == "");
      CHECK(evaluation.peak <= network.request.budget.bytes);
    }
  }
  CHECK(fitting > 12);
  CHECK_FALSE(Network(64_KiB).by(SwapPolicy::swap_all).has_value());
}

TEST_CASE("with room, only the rules that swap whatever fits swap anything") {
  const Network roomy(64_MiB);
  CHECK(swapped_sizes(roomy, *roomy.by(SwapPolicy::largest_first)).empty());
  CHECK(swapped_sizes(roomy, *roomy.by(SwapPolicy::as_needed)).empty());
  CHECK_FALSE(swapped_sizes(roomy, *roomy.by(SwapPolicy::swap_all)).empty());
  CHECK(swapped_sizes(roomy, *roomy.by(SwapPolicy::swap_convolutions)).size() <=
        swapped_sizes(roomy, *roomy.by(SwapPolicy::swap_all)).size());
}

TEST_CASE("the optimizer's rule puts updates on the CPU, and nothing else") {
  const Network roomy(64_MiB);
  const Placement placement = *roomy.by(SwapPolicy::optimizer_on_cpu);
  for (std::size_t t = 0; t < placement.device.size(); ++t) {
    const bool update = roomy.whole.step.graph->nodes[t].phase == Phase::update;
    CHECK((placement.device[t] == Device::cpu) == update);
  }
}

TEST_CASE("no rule's plan has a shorter step than the planner's") {
  const Bytes whole = whole_peak();
  for (const std::int64_t percent : {90, 70, 50}) {
    CAPTURE(percent);
    const Network network(Bytes(whole.count() / 100 * percent));
    const auto plan = cheapest_plan(network.planning, network.whole);
    REQUIRE(plan.has_value());
    int compared = 0;
    for (const SwapPolicy policy : swap_policies) {
      const auto placement = network.by(policy);
      if (!placement) continue;
      const Plan by_rule = assemble_plan(network.whole.step, network.whole.placed, *placement,
                                         {.budget = network.request.budget});
      if (!network.request.budget.fits(by_rule.totals.arena)) continue;
      ++compared;
      CHECK(plan->totals.step_seconds <= by_rule.totals.step_seconds);
    }
    CHECK(compared > 0);
  }
}

}  // namespace stowage
