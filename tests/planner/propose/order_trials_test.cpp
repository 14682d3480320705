// The step in an order with a lower peak.
#include "planner/propose/order_trials.hpp"

#include <doctest/doctest.h>

#include "estimator/order/order_problem.hpp"
#include "planner/explain/plan_words.hpp"
#include "planner/export/dot.hpp"
#include "planner/propose/proposals.hpp"
#include "tests/support/pinned_plans.hpp"
#include "tests/support/plan_mistakes.hpp"

namespace stowage {
namespace {

// Branches that are wide inside: 16 MiB each at a batch of 1,024, all of them at once as given.
std::string wide_branches(bool trains) {
  std::string text = "model: branching\ninputs:\n  x: {shape: [batch, 8]}\n";
  if (trains) text += "  y: {shape: [batch, 8]}\n";
  text += "layers:\n";
  for (int i = 0; i < 3; ++i) {
    text += "  - linear: {name: wide" + std::to_string(i) + ", from: x, features: 4096}\n";
  }
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    text.append("  - linear: {name: narrow").append(n).append(", from: wide").append(n);
    text += ", features: 8}\n";
  }
  text += "  - add: {name: two, from: [narrow0, narrow1]}\n";
  text += "  - add: {name: three, from: [two, narrow2]}\n";
  return trains ? text + "loss:\n  mse: {from: [three, y]}\n" : text;
}

PlanRequest branching_request(Bytes budget, bool trains) {
  PlanRequest request = testing::small_request(budget);
  const ChosenStep step{
      .lowering = {.mode = trains ? Mode::train : Mode::inference, .optimizer = {.name = "adam"}}};
  request.document = make_document(testing::described(wide_branches(trains).c_str()), step,
                                   Runtime::stowage, {}, step_alone)
                         .value();
  request.document.fixed_batch = true;  // no parts
  request.document.batch = 1024;
  request.batch = WholeBatch(1024);
  request.levers.operators = false;
  return request;
}

}  // namespace

TEST_CASE("a plan in another order is valid, shorter, and says what the order is worth") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans =
      make_plans(branching_request(20_MiB, false), *workspaces, {.work = {60'000'000}});
  REQUIRE(plans.has_value());
  const Plan& plan = plans->back();
  REQUIRE(plan.name == "order");
  CHECK(plan.totals.step_seconds < plans->front().totals.step_seconds);
  CHECK(plan.totals.arena <= 20_MiB);
  CHECK(
      plan.remarks.front().starts_with("with everything on the GPU this order takes at least 16."));
  CHECK(plan_in_words(plan).find("runs its kernels in an order with a lower peak") !=
        std::string::npos);
  CHECK(testing::plan_mistakes(plan) == "");
}

TEST_CASE("control dependencies are drawn of a step with an order of its own alone") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans =
      make_plans(branching_request(20_MiB, false), *workspaces, {.work = {60'000'000}});
  REQUIRE(plans.has_value());
  CHECK(export_dot(plans->back()).value().find("tooltip=\"control\"") != std::string::npos);
  CHECK(export_dot(plans->front()).value().find("tooltip=\"control\"") == std::string::npos);
}

TEST_CASE("an order is no proposal where none takes less") {
  const auto workspaces = rule_workspace_source(8.6);
  const ProposalOptions options{.work = {60'000'000}};
  const auto has_order = [&](const PlanRequest& request) {
    const Planning planning(request, *workspaces, options);
    return !order_trials(planning, make_case(planning, planning.document.graph).value()).empty();
  };
  CHECK(has_order(branching_request(20_MiB, false)));
  PlanRequest chain = testing::small_request(1_MiB);
  const ChosenStep step{.lowering = {.mode = Mode::inference}};
  chain.document = make_document(testing::described(testing::small_network), step, Runtime::stowage,
                                 {}, step_alone)
                       .value();
  CHECK_FALSE(has_order(chain));
}

TEST_CASE("recomputation and another order go together") {
  const auto workspaces = rule_workspace_source(8.6);
  const auto plans =
      make_plans(branching_request(34_MiB, true), *workspaces, {.work = {60'000'000}});
  REQUIRE(plans.has_value());
  const Plan& plan = plans->back();
  CHECK(plan.name == "recompute-order");
  CHECK_FALSE(plan.step.graph->settings.recomputed.empty());
  CHECK_FALSE(plan.step.graph->settings.order.empty());
  CHECK(plan.totals.step_seconds < plans->front().totals.step_seconds / 2);
  CHECK(testing::plan_mistakes(plan) == "");
}

}  // namespace stowage
