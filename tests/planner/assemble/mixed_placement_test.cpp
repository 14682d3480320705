#include "planner/assemble/mixed_placement.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "planner/assemble/assemble_plan.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"
#include "tests/support/small_steps.hpp"

namespace stowage {
namespace {

/// A chain of layers. The upload of each weight takes as long as the layer takes on the CPU.
ResidencyProblem chain(int layers) {
  ResidencyProblem problem;
  for (int i = 0; i < layers; ++i) {
    problem.operations.push_back({fmt::format("layer{}", i), {{0.01, 0_B}}, 1.0, 0_B, Pin::free});
    problem.items.push_back({.name = fmt::format("w{}", i),
                             .bytes = 1_MiB,
                             .touches = {{i, true, false}},
                             .wraps = true,
                             .host_at_start = true,
                             .h2d_seconds = 1.0,
                             .d2h_seconds = 1.0});
    std::vector<Touch> touches{{i, false, true}};
    if (i + 1 < layers) touches.push_back({i + 1, true, false});
    problem.items.push_back({.name = fmt::format("y{}", i),
                             .bytes = 1_KiB,
                             .touches = std::move(touches),
                             .h2d_seconds = 0.001,
                             .d2h_seconds = 0.001});
  }
  return problem;
}

/// All operations on one side; on the GPU each weight is uploaded when it is needed and leaves
/// again.
Placement all_on(const ResidencyProblem& problem, Device device) {
  ResidencyProblem pinned = problem;
  for (Operation& operation : pinned.operations) {
    operation.pin = device == Device::gpu ? Pin::gpu : Pin::cpu;
  }
  for (Item& item : pinned.items) {
    if (item.wraps) item.gap_pins = {GapPin::dropped};
  }
  return solve(pinned, {.budget = 1_GiB}).value().placement;
}

double step_of_mixture(ResidencyProblem problem, const Placement& placement) {
  const SizedStep step = step_of(problem);
  return assemble_plan(step, problem, placement, {.budget = 4_MiB}).totals.step_seconds;
}

}  // namespace

TEST_CASE("layers that take turns on the CPU and over the link take half as long as on either") {
  const ResidencyProblem problem = chain(32);
  const Placement here = all_on(problem, Device::cpu), there = all_on(problem, Device::gpu);
  CHECK(step_of_mixture(problem, here) == doctest::Approx(32));
  CHECK(step_of_mixture(problem, there) == doctest::Approx(32).epsilon(0.02));
  const auto mixed = mixed_placement(problem, here, there, {.share = 0.5, .parts = 32});
  REQUIRE(mixed.has_value());
  CHECK(evaluate(problem, *mixed).cpu_seconds == 16);
  CHECK(evaluate(problem, *mixed).upload_seconds == doctest::Approx(16).epsilon(0.01));
  CHECK(step_of_mixture(problem, *mixed) < 18);
  // One long stretch each cannot be hidden within so little memory.
  const auto halves = mixed_placement(problem, here, there, {.share = 0.5, .parts = 2});
  REQUIRE(halves.has_value());
  CHECK(step_of_mixture(problem, *halves) > 24);
}

TEST_CASE("two that agree on every operation cannot be mixed") {
  const ResidencyProblem problem = chain(4);
  const Placement there = all_on(problem, Device::gpu);
  CHECK(!mixed_placement(problem, there, there, {}).has_value());
}

TEST_CASE("a mixture is a placement, with each operation where one of the two has it") {
  Random random(31);
  int mixtures = 0, between = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    for (Operation& operation : problem.operations) operation.pin = Pin::free;
    for (Item& item : problem.items) item.gap_pins.clear();
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const auto placed_at = [&](double cpu) {
      const LaneWeights weights{1, cpu, 1, 1};
      return solve(weighted(problem, weights), {.budget = budget, .branches = false})
          .value()
          .placement;
    };
    const Placement many = placed_at(0.1), few = placed_at(10);
    for (const Mixture& mixture : {Mixture{0.5, 4}, Mixture{0.3, 8}, Mixture{1, 4}}) {
      const auto mixed = mixed_placement(problem, many, few, mixture);
      CHECK(mixed.has_value() == (many.device != few.device));
      if (!mixed) continue;
      ++mixtures;
      const Evaluation evaluation = evaluate(problem, *mixed);
      CHECK(evaluation.inconsistency == "");
      for (std::size_t t = 0; t < mixed->device.size(); ++t) {
        const bool is_one = mixed->device[t] == many.device[t] || mixed->device[t] == few.device[t];
        CHECK(is_one);
      }
      if (mixture.share == 1) CHECK(mixed->device == many.device);
      between += mixed->device != many.device && mixed->device != few.device ? 1 : 0;
    }
  }
  CHECK(mixtures > 300);
  CHECK(between > 30);
}

}  // namespace stowage
