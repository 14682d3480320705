#include "planner/assemble/copy_windows.hpp"

#include <doctest/doctest.h>

#include <string>

#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {
namespace {

/// Steps of a second on the GPU; an item of 4 MiB is made at step 1 and read at step 8, others fill
/// some of the steps between.
ResidencyProblem swap_of_one() {
  ResidencyProblem problem;
  for (int i = 0; i < 10; ++i) {
    problem.operations.push_back(
        {.name = "op" + std::to_string(i), .engines = {{1.0, 0_B}}, .pin = Pin::gpu});
  }
  problem.items.push_back({.name = "kept",
                           .bytes = 4_MiB,
                           .touches = {{1, false, true}, {8, true, false}},
                           .h2d_seconds = 1.5,
                           .d2h_seconds = 1.5});
  problem.items.push_back({.name = "large",
                           .bytes = 8_MiB,
                           .touches = {{4, false, true}, {5, true, false}},
                           .h2d_seconds = 9,
                           .d2h_seconds = 9});
  return problem;
}

}  // namespace

TEST_CASE("a window reaches as far as a copy does beside compute") {
  const WindowedProblem windowed = with_copy_windows(swap_of_one(), 16_MiB, 1);
  // Written at step 1: the download is under way during step 2 and half of step 3. The upload
  // begins at boundary 6, to be done when step 8 begins.
  const std::vector<Touch>& touches = windowed.problem.items[0].touches;
  REQUIRE(touches.size() == 4);
  CHECK(touches[1].step == 3);
  CHECK(touches[2].step == 6);
  CHECK(touches[1].reads);
  CHECK_FALSE(touches[1].writes);
  CHECK(windowed.touch[0] == std::vector<std::int32_t>{0, 3});
  CHECK(windowed.problem.items[1].touches.size() == 2);  // nothing lies between its touches
  CHECK(ill_formed(windowed.problem).empty());
}

TEST_CASE("no window is made where it would not fit beside what an operation needs") {
  const WindowedProblem windowed = with_copy_windows(swap_of_one(), 3_MiB, 1);
  CHECK(windowed.problem.items[0].touches.size() == 2);
}

TEST_CASE("a swap within windows is one of the original, which costs and takes no more") {
  const ResidencyProblem problem = swap_of_one();
  const WindowedProblem windowed = with_copy_windows(problem, 10_MiB, 1);
  const auto solution = solve(windowed.problem, {.budget = 10_MiB});
  REQUIRE(solution.has_value());
  const Placement placement = without_windows(problem, windowed, solution->placement);
  const Evaluation evaluation = evaluate(problem, placement);
  REQUIRE(evaluation.consistent);
  CHECK(evaluation.cost_seconds == doctest::Approx(13));  // ten steps and both copies
  CHECK_FALSE(placement.resident[0][0]);
}

TEST_CASE("placements of random problems with windows are placements without") {
  Random random(5);
  int with_windows = 0, swapped = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 8) << 20);
    const WindowedProblem windowed = with_copy_windows(problem, budget, 0.5 + 0.5 * (round % 4));
    REQUIRE(ill_formed(windowed.problem) == "");
    CHECK(memory_floor(windowed.problem).bytes <= budget);
    bool larger = false;
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      larger = larger || windowed.problem.items[i].touches.size() > problem.items[i].touches.size();
    }
    with_windows += larger ? 1 : 0;
    const auto solution = solve(windowed.problem, {.budget = budget, .branches = false});
    REQUIRE(solution.has_value());
    const Evaluation evaluation =
        evaluate(problem, without_windows(problem, windowed, solution->placement));
    REQUIRE(evaluation.inconsistency == "");
    CHECK(evaluation.cost_seconds <= solution->evaluation.cost_seconds + 1e-9);
    for (std::size_t t = 0; t < evaluation.memory.size(); ++t) {
      CHECK(evaluation.memory[t] <= solution->evaluation.memory[t]);
    }
    swapped += evaluation.h2d_bytes > 0_B ? 1 : 0;
  }
  CHECK(with_windows > 10);
  CHECK(swapped > 100);
}

}  // namespace stowage
