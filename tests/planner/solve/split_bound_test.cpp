#include "planner/solve/split_bound.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/assemble/assemble_plan.hpp"
#include "planner/solve/placement_search.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"
#include "tests/support/small_steps.hpp"

namespace stowage {
namespace {

/// Forward and backward of `layers` layers of a second each: every layer's result is read again by
/// its backward.
ResidencyProblem there_and_back(int layers, double copy_seconds) {
  ResidencyProblem problem;
  for (int i = 0; i < 2 * layers; ++i) {
    problem.operations.push_back(
        {.name = "op" + std::to_string(i), .engines = {{1.0, 0_B}}, .pin = Pin::gpu});
  }
  for (int i = 0; i < layers; ++i) {
    problem.items.push_back({.name = "result" + std::to_string(i),
                             .bytes = 1_MiB,
                             .touches = {{i, false, true}, {2 * layers - 1 - i, true, false}},
                             .h2d_seconds = copy_seconds,
                             .d2h_seconds = copy_seconds});
  }
  return problem;
}

}  // namespace

TEST_CASE("with room for all the bound is the compute, and nothing else") {
  CHECK(split_bound(there_and_back(8, 10), 8_MiB).seconds == doctest::Approx(16));
}

TEST_CASE("downloads come before what uploads come after") {
  // During the last forward and the first backward node eight results want to be there; four fit.
  // Four downloads of 10 s have to be over before, four uploads follow: 40 s on either side, and
  // the node between. The busiest lane alone would say 40.
  ResidencyProblem problem = there_and_back(8, 10);
  const double bound = split_bound(problem, 4_MiB).seconds;
  CHECK(bound == doctest::Approx(81).epsilon(1e-6));
  // A step that reaches it, but for the first node and the last, beside which nothing can be
  // copied.
  const SizedStep step = step_of(problem);
  const auto solution = solve(problem, {.budget = 4_MiB});
  REQUIRE(solution.has_value());
  const Plan plan = assemble_plan(step, problem, solution->placement, {.budget = 4_MiB});
  CHECK(plan.totals.step_seconds >= bound);
  CHECK(plan.totals.step_seconds <= 1.15 * bound);
}

TEST_CASE("where compute hides the copies the bound is the compute") {
  CHECK(split_bound(there_and_back(8, 0.5), 4_MiB).seconds == doctest::Approx(16));
}

TEST_CASE("no plan of random problems within a budget has a step below the bound") {
  int tight = 0, compared = 0;
  Random random(23);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    // Pinned, so that there is something to be bounded.
    if (round % 4 != 0) {
      for (Operation& operation : problem.operations) operation.pin = Pin::gpu;
    }
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const double bound = split_bound(problem, budget).seconds;
    const SizedStep step = step_of(problem);
    const auto least = nothing_resident(
        make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), budget)));
    const auto solution = solve(problem, {.budget = budget, .branches = false});
    REQUIRE(solution.has_value());
    for (const Placement& placement : {least, solution->placement}) {
      const Plan plan = assemble_plan(step, problem, placement, {.budget = budget});
      if (plan.totals.arena > budget) continue;
      ++compared;
      CHECK(bound <= plan.totals.step_seconds * (1 + 1e-6));
      tight += bound > 0.9 * plan.totals.step_seconds ? 1 : 0;
    }
  }
  CHECK(compared > 300);
  CHECK(tight > 50);
}

}  // namespace stowage
