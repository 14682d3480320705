// The problem that the validator states from a plan is the one that the planner solved, though
// neither reads the other's.
#include "planner/validate/stated_problem.hpp"

#include <doctest/doctest.h>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/propose/certify.hpp"
#include "planner/propose/proposals.hpp"
#include "tests/planner/bounds/bound_problems.hpp"

namespace stowage::test {
namespace {

constexpr const char* tied_network = R"(model: tied
inputs:
  tokens: {shape: [batch, 6], dtype: int64}
  label: {shape: [batch, 16]}
layers:
  - embedding: {name: words, from: tokens, count: 40, features: 16}
  - layer_norm: {name: norm1}
  - dropout: {name: dropped, p: 0.1}
  - linear: {name: up, features: 64}
  - gelu: {name: act}
  - linear: {name: down, features: 16}
  - add: {name: sum, from: [down, words]}
  - flatten
  - linear: {name: head, features: 16}
loss:
  mse: {from: [head, label]}
train: {optimizer: adamw}
)";

PlanRequest request_of_tied(std::vector<DevicePin> pins) {
  const auto source = std::make_shared<const SourceText>(SourceText{"t.yaml", tied_network});
  const auto model = load_model(source);
  if (!model) FAIL(render(model.error()));
  const ChosenStep step{.lowering = {.optimizer = model->optimizer}};
  PlanRequest request{
      .document = make_document(*model, step, Runtime::stowage, {}, step_alone).value(),
      .description = source,
      .batch = WholeBatch(8),
      .card = generic_card(64_MiB),
      .host = {.name = "test", .pinned_limit = 1_GiB},
      .budget = 16_MiB};
  request.host.cpu_flops = 1e11;
  request.host.memory_bandwidth = 2e10;
  request.host.h2d_bandwidth = 7e9;
  request.pins.pins = std::move(pins);
  return request;
}

void compare(const BoundProblem& stated, const BoundProblem& planners) {
  REQUIRE(stated.nodes.size() == planners.nodes.size());
  for (std::size_t i = 0; i < stated.nodes.size(); ++i) {
    CAPTURE(i);
    CHECK(stated.nodes[i].engines.front().cost ==
          doctest::Approx(planners.nodes[i].engines.front().cost).epsilon(1e-12));
    CHECK(stated.nodes[i].cpu_cost == doctest::Approx(planners.nodes[i].cpu_cost).epsilon(1e-12));
    CHECK(stated.nodes[i].least_scratch() == planners.nodes[i].least_scratch());
    CHECK(stated.nodes[i].side == planners.nodes[i].side);
  }
  REQUIRE(stated.items.size() == planners.items.size());
  for (std::size_t i = 0; i < stated.items.size(); ++i) {
    const BoundItem& ours = stated.items[i];
    const BoundItem& theirs = planners.items[i];
    CAPTURE(ours.number);
    CHECK(ours.bytes == theirs.bytes);
    CHECK(ours.goes_round == theirs.goes_round);
    CHECK(ours.host_at_start == theirs.host_at_start);
    CHECK(ours.upload == doctest::Approx(theirs.upload).epsilon(1e-12));
    CHECK(ours.download == doctest::Approx(theirs.download).epsilon(1e-12));
    CHECK(ours.gaps == theirs.gaps);
    REQUIRE(ours.touches.size() == theirs.touches.size());
    for (std::size_t t = 0; t < ours.touches.size(); ++t) {
      CHECK(ours.touches[t].step == theirs.touches[t].step);
      CHECK(ours.touches[t].reads == theirs.touches[t].reads);
      CHECK(ours.touches[t].writes == theirs.touches[t].writes);
    }
  }
}

}  // namespace

TEST_CASE("the problem stated from a plan is the planner's, in every cost, size and pin") {
  const auto workspaces = rule_workspace_source(8.6);
  const DevicePin state{PinTarget::storage_class, "optimizer_state", PinnedSide::cpu};
  const DevicePin up{PinTarget::scope, "up", PinnedSide::cpu};
  const DevicePin head{PinTarget::scope, "head", PinnedSide::gpu};
  for (const std::vector<DevicePin>& pins : {std::vector<DevicePin>{}, {state}, {up, head}}) {
    const PlanRequest request = request_of_tied(pins);
    const auto plans = make_plans(request, *workspaces, {.work = {200'000}});
    REQUIRE(plans.has_value());
    const Plan& plan = plans->front();
    const auto sized = size_step(plan.step.graph, plan.step.batch, *workspaces);
    REQUIRE(sized.has_value());
    const Rates rates = make_rates(request.card, request.host);
    for (const bool kept : {false, true}) {
      for (const bool pinned : {false, true}) {
        const ProblemOptions options{.compute_on_gpu = pinned,
                                     .all_on_gpu = false,
                                     .updates_on_gpu = pinned && kept,
                                     .pins = &plan.pins,
                                     .keep_activations = kept,
                                     .keep_weights = kept,
                                     .keep_state = kept};
        const ResidencyProblem problem = make_problem(*sized, rates, options);
        BoundProblem planners = bound_problem_of(problem, request.budget.bytes);
        for (std::size_t i = 0; i < planners.items.size(); ++i) {
          planners.items[i].number = problem.storage_of[i].value;
        }
        compare(stated_problem(plan, scope_of(options), {}), planners);
      }
    }
  }
}

}  // namespace stowage::test
