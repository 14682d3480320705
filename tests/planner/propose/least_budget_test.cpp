// The smallest budget: with it there is a plan.
#include "planner/propose/least_budget.hpp"

#include <doctest/doctest.h>

#include "planner/propose/proposals.hpp"
#include "planner/propose/step_case.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage {
namespace {

using testing::small_request;

PlanRequest with_levers(const std::string& levers, const std::vector<std::string>& pins = {}) {
  PlanRequest request = small_request(1_KiB, pins);
  request.levers = parse_levers(levers).value();
  return request;
}

PlanRequest inference(PlanRequest request) {
  const ChosenStep step{.lowering = {.mode = Mode::inference}};
  request.document = make_document(testing::described(testing::small_network), step,
                                   Runtime::stowage, {}, step_alone)
                         .value();
  return request;
}

LeastBudget least_of(const PlanRequest& request) {
  const auto workspaces = rule_workspace_source(8.6);
  const auto least = least_budget(request, *workspaces);
  if (!least) FAIL(render(least.error()));
  REQUIRE(least->has_value());
  return **least;
}

bool has_plan(PlanRequest request, Bytes budget) {
  const auto workspaces = rule_workspace_source(8.6);
  request.budget = budget;
  const auto plans = make_plans(request, *workspaces, {.work = {60'000'000}});
  if (!plans) return false;
  for (const Plan& plan : *plans) CHECK(plan.totals.arena <= budget);
  return true;
}

}  // namespace

TEST_CASE("with the least budget there is a plan, whatever the levers and the mode") {
  for (const char* levers :
       {"activations", "optimizer", "weights", "recompute", "activations,weights",
        "optimizer,recompute", "activations,optimizer,weights,recompute"}) {
    CAPTURE(levers);
    for (const PlanRequest& request : {with_levers(levers), inference(with_levers(levers))}) {
      const LeastBudget least = least_of(request);
      CAPTURE(least.plan);
      CHECK(has_plan(request, least.bytes));
      CHECK(least.host_holds_it);
    }
  }
}

TEST_CASE("with less than the least budget there is no plan, where nothing need stay") {
  const PlanRequest request = with_levers("activations,optimizer,weights");
  const LeastBudget least = least_of(request);
  CHECK_FALSE(has_plan(request, least.bytes - Bytes(256)));
  // One sample at a time, its gradients added up.
  CHECK(least.plan == "micro-batch-16");
}

TEST_CASE("of a step that has parts already the least budget is its floor") {
  PlanRequest request = with_levers("activations,optimizer,weights,recompute");
  StepGraph graph = *request.document.graph;
  graph.micro_batch = {};
  request.document.graph = std::make_shared<const StepGraph>(std::move(graph));
  request.document.fixed_batch = true;
  const LeastBudget least = least_of(request);
  const auto workspaces = rule_workspace_source(8.6);
  const Planning planning(request, *workspaces, {});
  const auto whole = make_case(planning, planning.document.graph);
  CHECK(least.plan == "cheapest");
  CHECK(least.bytes == round_up(memory_floor(whole->placed).bytes, Bytes(256)));
  CHECK(has_plan(request, least.bytes));
  CHECK_FALSE(has_plan(request, least.bytes - Bytes(256)));
}

TEST_CASE("what pins keep on the GPU counts in the least budget") {
  const PlanRequest free = with_levers("activations,optimizer,weights");
  const PlanRequest pinned =
      with_levers("activations,optimizer,weights", {"class:optimizer_state=gpu"});
  const LeastBudget least = least_of(pinned);
  CHECK(least.bytes > least_of(free).bytes);
  CHECK(has_plan(pinned, least.bytes));
}

TEST_CASE("recomputation alone is halved down to what its search reaches") {
  PlanRequest request = with_levers("recompute");
  request.document.fixed_batch = true;  // no parts
  const LeastBudget least = least_of(request);
  CHECK(least.plan == "recompute");
  const LeastBudget without = least_of([&] {
    PlanRequest kept = request;
    kept.levers.recompute = false;
    return kept;
  }());
  CHECK(least.bytes < without.bytes);
  CHECK(has_plan(request, least.bytes));
  CHECK(has_plan(request, without.bytes));
}

TEST_CASE("a host that is too small for what leaves the GPU is told of") {
  PlanRequest request = with_levers("activations,optimizer,weights");
  request.host.memory = 64_KiB;
  request.host.pinned_limit = 32_KiB;
  CHECK_FALSE(least_of(request).host_holds_it);
}

}  // namespace stowage
