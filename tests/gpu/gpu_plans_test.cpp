// Runs whole models under plans of many kinds: plans drawn at random from the definition, with
// copies in both directions and nodes on the CPU; and plans that the planner makes for budgets,
// with pins, micro-batches and recomputed values.
#include <doctest/doctest.h>

#include <string>

#include "estimator/rewrite/recompute.hpp"
#include "estimator/rewrite/rerun_groups.hpp"
#include "gpu_probe/run/missing_kernels.hpp"
#include "tests/gpu/machine.hpp"
#include "tests/gpu/planned_runs.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/support/pinned_plans.hpp"

namespace stowage::test {
namespace {

struct PlannedModel {
  std::string what;
  const char* text;
  LoweringSettings settings;
  std::int64_t steps = 1;
  std::uint64_t seed = 0;  ///< of the random plan; 0: everything stays on the GPU
  double on_cpu = 0.15;    ///< share of the nodes
};

LoweringSettings inference() {
  return {.kernels = KernelSet::stowage, .mode = Mode::inference, .in_place = true};
}

Plan plan_of(const StepGraph& graph, const PlannedModel& planned) {
  if (planned.seed == 0) return resident_plan(graph, 2);
  return random_plan(graph, 2, planned.seed, {.on_cpu = planned.on_cpu});
}

// Small enough for the convolutions of the pretended cuDNN.
const char* const planned_network = R"(model: planned
inputs:
  image: {shape: [batch, 4, 8, 8]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv1, channels: 8, kernel: 3, padding: 1}
  - relu: {name: relu1}
  - conv2d: {name: conv2, channels: 8, kernel: 3, padding: 1}
  - relu: {name: relu2}
  - conv2d: {name: conv3, channels: 8, kernel: 3, padding: 1}
  - relu: {name: relu3}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss:
  cross_entropy: {from: [head, label]}
)";

/// The planner's proposals for a budget of `percent` of what everything on the GPU takes.
std::vector<Plan> proposals(std::int64_t percent, const std::vector<std::string>& pins) {
  const ChosenStep step{.lowering = without_tf32(adamw())};
  PlanRequest request = testing::small_request(64_MiB, pins);
  request.document =
      make_document(testing::described(planned_network), step, Runtime::stowage, {}, step_alone)
          .value();
  request.batch = WholeBatch(8);
  const auto workspaces = rule_workspace_source(8.6);
  request.budget = Bytes(least_whole_arena(request, *workspaces).value().count() * percent / 100);
  const auto plans = make_plans(request, *workspaces, {.work = {20'000'000}});
  if (!plans) FAIL(render(plans.error()));
  return *plans;
}

StepGraph with_all_recomputed(const StepGraph& graph) {
  std::vector<RecomputedValue> values;
  for (const RerunGroup& group : rerun_groups(graph).groups) {
    if (!group.makes.empty()) values.push_back({graph.storage(group.makes.front()).name});
  }
  auto step = with_recomputation(graph, values);
  REQUIRE(step.has_value());
  return *std::move(step);
}

}  // namespace

TEST_CASE("a small network with everything resident ends where the host's does") {
  const StepGraph graph = step_of(small_cnn, without_tf32(sgd_momentum()));
  CHECK(failures_on_machine(resident_plan(graph, 2)) == "");
}

TEST_CASE("whole models under plans drawn from the definition end where the host's do") {
  for (const PlannedModel& planned :
       {PlannedModel{"mlp", mlp, sgd_momentum(), 3},
        PlannedModel{"mlp, copies", mlp, adamw(), 1, 1},
        PlannedModel{"mlp, two micro-batches", mlp, sgd_momentum(2), 3, 2},
        PlannedModel{"mlp, half on the CPU", mlp, sgd_momentum(), 2, 3, 0.5},
        PlannedModel{"convolutions, copies", small_cnn, sgd_momentum(), 2, 4},
        PlannedModel{"convolutions, none on the CPU", small_cnn, adamw(), 1, 5, 0},
        PlannedModel{"convolutions, inference", small_cnn, inference(), 1, 6},
        PlannedModel{"residual network", small_resnet, sgd_momentum(), 1},
        PlannedModel{"residual network, copies", small_resnet, adamw(), 1, 7},
        PlannedModel{"transformer", small_gpt2, adamw(), 1},
        PlannedModel{"transformer, copies", small_gpt2, sgd_momentum(), 1, 8},
        PlannedModel{"transformer, two micro-batches", small_gpt2, adamw(2), 1, 9},
        PlannedModel{"transformer, inference", small_gpt2, inference(), 1, 10},
        PlannedModel{"u-net, two micro-batches", small_unet, sgd_momentum(2), 1, 11},
        PlannedModel{"convolutions, TF32 allowed", small_cnn, sgd_momentum(), 1, 12}}) {
    const bool tf32 = planned.what.ends_with("TF32 allowed");
    const StepGraph graph =
        step_of(planned.text, tf32 ? planned.settings : without_tf32(planned.settings));
    CAPTURE(planned.what);
    CHECK(failures_on_machine(plan_of(graph, planned), planned.steps) == "");
  }
}

TEST_CASE("steps with values made again end where the host's do") {
  for (const char* text : {mlp, small_cnn, small_gpt2}) {
    const StepGraph graph = with_all_recomputed(step_of(text, without_tf32(sgd_momentum())));
    CAPTURE(graph.model);
    CHECK(failures_on_machine(random_plan(graph, 2, 12)) == "");
  }
}

TEST_CASE("the planner's plans for budgets and pins end where the host's do") {
  int plans = 0;
  const auto run = [&](std::int64_t percent, const std::vector<std::string>& pins) {
    for (const Plan& plan : proposals(percent, pins)) {
      CAPTURE(plan.name);
      CAPTURE(percent);
      CHECK(failures_on_machine(plan) == "");
      ++plans;
    }
  };
  run(120, {});
  run(80, {});
  run(60, {});
  run(80, {"conv2.*=cpu"});
  run(80, {"class:optimizer_state=cpu"});
  MESSAGE(plans, " plans");
  CHECK(plans >= 10);
}

TEST_CASE(
    "whole models in other formats end where the host's do, where the device has their kernels") {
  for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::mixed_bf16,
                                    Precision::amp_fp16, Precision::fp64}) {
    for (const char* text : {mlp, small_cnn, small_gpt2}) {
      const StepGraph graph = step_of(text, without_tf32(adamw()), precision);
      const std::string what = graph.model + " in " + std::string(to_string(precision));
      CAPTURE(what);
      const Plan plan = random_plan(graph, 2, 13);
      const auto missing = missing_kernels(plan, KernelDevice::cuda);
      if (!missing.empty()) {
        MESSAGE(what, " does not run: ", missing.front());
        continue;
      }
      CHECK(failures_on_machine(plan) == "");
    }
  }
}

}  // namespace stowage::test
