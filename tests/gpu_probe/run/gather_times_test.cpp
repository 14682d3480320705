// Makes the times that plans use from the spans of a run, and compares the two.
#include "gpu_probe/run/gather_times.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "gpu_probe/run/core_waits.hpp"
#include "gpu_probe/run/time_check.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

/// Steps in which each node of step n takes n seconds and each copy n milliseconds a byte.
std::vector<StepTimes> steps_of(const Plan& plan, const std::vector<double>& seconds) {
  std::vector<StepTimes> steps;
  for (const double each : seconds) {
    StepTimes& step = steps.emplace_back();
    double now = 0;
    for (std::size_t i = 0; i < plan.nodes.size(); ++i, now += each) {
      step.nodes.push_back({now, now + each});
    }
    for (const Transfer& transfer : plan.transfers) {
      const auto bytes = static_cast<double>(plan.bytes(transfer.storage).count());
      step.copies.push_back({0, each * bytes / 1000});
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("a node's time is the median of the warm steps, a call's the mean of its nodes") {
  const Plan plan = random_plan(step_of(small_cnn, sgd_momentum()), 2, 11);
  const MeasuredTimes times = gather_times(plan, steps_of(plan, {100, 4, 2, 3}), false);
  REQUIRE(!times.gpu.empty());
  REQUIRE(!times.cpu.empty());
  CHECK(times.gpu.size() + times.cpu.size() <= plan.nodes.size());
  for (const auto* side : {&times.gpu, &times.cpu}) {
    for (const MeasuredCall& call : *side) CHECK(call.seconds == 3);
  }
  REQUIRE(times.h2d.has_value());
  CHECK(times.h2d->bandwidth == doctest::Approx(1000.0 / 3));
  CHECK(times.h2d->latency == doctest::Approx(0));
}

TEST_CASE("one step alone is measured as it is") {
  const Plan plan = random_plan(step_of(mlp, sgd_momentum()), 2, 3);
  const MeasuredTimes times = gather_times(plan, steps_of(plan, {5}), true);
  for (const MeasuredCall& call : times.gpu) CHECK(call.seconds == 5);
}

TEST_CASE("on the host kernels that ran beside another count only where none ran alone") {
  const Plan plan = random_plan(step_of(small_cnn, sgd_momentum()), 2, 11);
  std::vector<StepTimes> steps = steps_of(plan, {2});
  CHECK(std::ranges::count(ran_alone(steps[0], plan), false) == 0);
  // All nodes of the CPU run before those of the GPU, except for the first node, which runs beside
  // all of these.
  std::size_t gpu = 0, cpu = 0;
  while (device_of(plan, plan.nodes[gpu]) != Device::gpu) ++gpu;
  while (device_of(plan, plan.nodes[cpu]) != Device::cpu) ++cpu;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto at = static_cast<double>(i);
    if (device_of(plan, plan.nodes[i]) == Device::cpu) steps[0].nodes[i] = {at - 1000, at - 999};
  }
  steps[0].nodes[cpu] = {-100, 1000};
  const std::vector<bool> alone = ran_alone(steps[0], plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    CHECK(alone[i] == (device_of(plan, plan.nodes[i]) == Device::cpu && i != cpu));
  }
  // If it ran alone in one step, only that step counts.
  steps.push_back(steps_of(plan, {2}).front());
  steps.push_back(steps.front());
  const std::string call = call_of(plan.step, plan.kernel(NodeId::of(gpu)));
  for (const MeasuredCall& each : gather_times(plan, steps, true).gpu) CHECK(each.seconds == 2);
  steps[2].nodes[gpu].end = steps[2].nodes[gpu].begin + 50;
  const MeasuredTimes emulated = gather_times(plan, steps, true);
  const auto found = std::ranges::find(emulated.gpu, call, &MeasuredCall::call);
  REQUIRE(found != emulated.gpu.end());
  CHECK(found->seconds == 2);
}

TEST_CASE("copies are fitted with a latency and a bandwidth, neither below 0") {
  const std::array line{TimedCopy{0, 1}, TimedCopy{100, 2}, TimedCopy{300, 4}};
  const auto link = fitted_link(line);
  REQUIRE(link.has_value());
  CHECK(link->latency == doctest::Approx(1));
  CHECK(link->bandwidth == doctest::Approx(100));
  const std::array one{TimedCopy{100, 2}, TimedCopy{100, 2}};
  CHECK(fitted_link(one) == MeasuredLink{0, 50});
  const std::array falling{TimedCopy{100, 4}, TimedCopy{200, 2}};
  CHECK(fitted_link(falling) == MeasuredLink{0, 50});
  CHECK_FALSE(fitted_link({}).has_value());
}

TEST_CASE("lanes are added up by where nodes and copies were") {
  const Plan plan = random_plan(step_of(small_cnn, sgd_momentum()), 2, 11);
  const LaneSeconds lanes = lane_seconds(steps_of(plan, {2}).front(), plan);
  const auto on_cpu = std::ranges::count_if(
      plan.nodes, [&](const PlannedNode& node) { return device_of(plan, node) == Device::cpu; });
  CHECK(lanes.cpu == 2.0 * static_cast<double>(on_cpu));
  CHECK(lanes.kernels() == 2.0 * static_cast<double>(plan.nodes.size()));
  CHECK(lanes.h2d == doctest::Approx(2.0 * static_cast<double>(plan.totals.h2d.count()) / 1000));
  CHECK(lanes.d2h == doctest::Approx(2.0 * static_cast<double>(plan.totals.d2h.count()) / 1000));
}

TEST_CASE("times are held against the plan's where the machine was idle") {
  Plan plan = random_plan(step_of(mlp, sgd_momentum()), 2, 3);
  plan.machine.measured_on = "host";
  for (Processor& processor : plan.machine.processors) {
    processor.node_seconds.assign(plan.nodes.size(), 2);
  }
  const auto nodes = static_cast<double>(plan.nodes.size());
  const auto check = [&](const std::vector<double>& seconds) {
    return check_times(plan, steps_of(plan, seconds), true);
  };
  CHECK(planned_lane_seconds(plan).kernels() == 2 * nodes);
  CHECK(check({9, 2.4, 2.4}).passed);
  CHECK(check({9, 2.4, 2.4}).detail ==
        fmt::format("{:.4g} s measured, {:.4g} s planned (+20.0 percent, 25 are allowed)",
                    2.4 * nodes, 2 * nodes));
  CHECK_FALSE(check({9, 3, 3}).passed);
  CHECK_FALSE(check({9, 1, 1}).passed);
  const Check noisy = check({9, 3, 5});
  CHECK(noisy.passed);
  CHECK(noisy.detail.find("not compared: the machine is not idle, its steps took 1.50 to 2.50") !=
        noisy.detail.npos);
  const Check busy = check_times(plan, steps_of(plan, {3, 3, 3}), true, 0.4);
  CHECK(busy.passed);
  CHECK(busy.detail.find("it waited 40 percent of the time for a core") != busy.detail.npos);
  CHECK_FALSE(check_times(plan, steps_of(plan, {3, 3, 3}), true, 0.05).passed);
  plan.totals.step_seconds = 2 * nodes;
  const Check device = check_times(plan, steps_of(plan, {2.1}), false);
  CHECK(device.name == "step seconds");
}

TEST_CASE("a thread's waits are the second number of its schedstat") {
  CHECK(seconds_waited("1219339 2500000000 18\n") == 2.5);
  CHECK_FALSE(seconds_waited("").has_value());
  CHECK_FALSE(seconds_waited("none of these").has_value());
  const auto share = CoreWaits().share();
  CHECK((!share || *share >= 0));
}

}  // namespace stowage::test
