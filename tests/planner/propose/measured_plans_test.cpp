// Plans that are made with measured times: the plan holds them, and the validator, which shares
// nothing with the planner, counts and proves with them again.
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/document/make_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/explain/planned_problem.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/validate/node_seconds.hpp"
#include "planner/validate/validate_plan.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

constexpr const char* measured_network = R"(model: measured
inputs:
  image: {shape: [batch, 16, 16, 16]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, channels: 32, kernel: 3, padding: 1}
  - relu
  - conv2d: {name: conv2, channels: 32, kernel: 3, padding: 1}
  - relu
  - flatten
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

PlanRequest measured_request(Bytes budget) {
  const ModelGraph model = testing::described(measured_network);
  const ChosenStep step{.lowering = {.optimizer = {.name = "adam"}}};
  return {
      .document = make_document(model, step, Runtime::stowage, {}, step_alone).value(),
      .description = nullptr,
      .batch = WholeBatch(16),
      .card = generic_card(64_MiB),
      .host = {.name = "test", .pinned_limit = 1_GiB, .cpu_flops = 1e11, .memory_bandwidth = 2e10},
      .budget = budget,
      .stowage_version = "test"};
}

/// The first node of the step took `first` seconds on each side, and copies are slow.
std::shared_ptr<const MeasuredTimes> times_for(const PlanRequest& request, double first) {
  const SizedStep step = size_storages(request.document.graph, 16).value();
  const KernelNode& node = step.graph->nodes.front();
  MeasuredTimes times{.backend = "host", .card = "generic", .host = "test CPU"};
  times.gpu.push_back(
      {call_of(step, node), std::string(kernel_name(node)), kernel_work(step, node), first});
  times.h2d = times.d2h = MeasuredLink{1e-3, 1e9};
  return std::make_shared<const MeasuredTimes>(std::move(times));
}

std::string wrong_with(const Plan& plan) {
  auto workspaces = rule_workspace_source(8.6);
  std::string wrong;
  for (const Check& check : validate_plan(plan, *workspaces).checks) {
    if (!check.passed) wrong += check.name + ": " + check.detail + "\n";
  }
  return wrong;
}

}  // namespace

TEST_CASE("plans with measured times are valid, and their bounds are proved with them") {
  PlanRequest request = measured_request(64_MiB);
  request.measured = times_for(request, 0.25);
  auto workspaces = rule_workspace_source(8.6);
  const auto with_room = make_plans(request, *workspaces);
  REQUIRE(with_room.has_value());
  request.budget = Bytes(with_room->front().totals.arena.count() * 7 / 10);
  const auto plans = make_plans(request, *workspaces);
  REQUIRE(plans.has_value());
  for (const Plan& plan : *plans) {
    CAPTURE(plan.name);
    CHECK(wrong_with(plan) == "");
    CHECK(plan.machine.measured_on == "host");
    for (const Processor& processor : plan.machine.processors) {
      REQUIRE(processor.node_seconds.size() == plan.nodes.size());
    }
    CHECK(plan.remarks.front() ==
          "its times are those of the host's kernels on 'test CPU', which stood in for the GPU: "
          "they say nothing about a generic 64.0 MiB card");
    const auto read =
        read_plan(std::make_shared<const SourceText>(SourceText{"plan", write_plan(plan)}));
    if (!read) FAIL(render(read.error()));
    CHECK(wrong_with(*read) == "");
    const auto planned = planned_problem(*read);
    REQUIRE(planned.has_value());
    CHECK(planned->evaluation.cost_seconds == doctest::Approx(plan.totals.cost_seconds));
  }
  const Plan& whole = with_room->front();
  CHECK(node_seconds(whole, 0) == 0.25);
  CHECK(whole.totals.cost_seconds > 0.25);
}

TEST_CASE("a plan whose measured times were changed is found out") {
  PlanRequest request = measured_request(64_MiB);
  request.measured = times_for(request, 0.25);
  auto workspaces = rule_workspace_source(8.6);
  const auto plans = make_plans(request, *workspaces);
  REQUIRE(plans.has_value());
  Plan plan = plans->front();
  plan.machine.processors[0].node_seconds[0] = 0.5;
  CHECK(wrong_with(plan).find("cost: cost_seconds is") != std::string::npos);
  plan = plans->front();
  plan.machine.processors[0].node_seconds.pop_back();
  CHECK(wrong_with(plan).find("processor 'gpu' has the seconds of") != std::string::npos);
  plan = plans->front();
  plan.machine.processors[0].node_seconds[0] = -1;
  CHECK(wrong_with(plan).find("processor 'gpu' cannot be") != std::string::npos);
}

}  // namespace stowage
