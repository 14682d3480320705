// From a run's spans to times that plans are made with, and the two held against each other.
#include "gpu_probe/run/gather_times.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "gpu_probe/run/time_check.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

/// Each node of step n takes n seconds, each copy n milliseconds a byte.
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
  const MeasuredTimes times = gather_times(plan, steps_of(plan, {100, 4, 2, 3}));
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
  const MeasuredTimes times = gather_times(plan, steps_of(plan, {5}));
  for (const MeasuredCall& call : times.gpu) CHECK(call.seconds == 5);
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
  CHECK(noisy.detail.find("not compared: the machine is not idle") != noisy.detail.npos);
  plan.totals.step_seconds = 2 * nodes;
  const Check device = check_times(plan, steps_of(plan, {2.1}), false);
  CHECK(device.name == "step seconds");
}

}  // namespace stowage::test
