#include "planner/assemble/fit_schedule.hpp"

#include <doctest/doctest.h>

#include "planner/assemble/assemble_plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"
#include "tests/support/small_steps.hpp"

namespace stowage {

TEST_CASE("copies in flight shorten the step and never leave the budget") {
  Random random(61);
  int shorter = 0, compared = 0;
  for (int round = 0; round < 600; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const SizedStep step = step_of(problem);
    const auto solution = solve(problem, {.budget = budget, .branches = false});
    REQUIRE(solution.has_value());
    const PlacedStep placed(step, problem, solution->placement);
    const ScheduleOutcome narrow = fit_schedule(placed, {.budget = budget, .widens = false});
    const ScheduleOutcome wide = fit_schedule(placed, {.budget = budget});
    REQUIRE(narrow.fitted.has_value());
    REQUIRE(wide.fitted.has_value());
    CHECK((wide.arena <= budget) == (narrow.arena <= budget));
    const double waits = placed.step_seconds(narrow.fitted->schedule);
    const double hides = placed.step_seconds(wide.fitted->schedule);
    CHECK(hides <= waits);
    shorter += hides < waits ? 1 : 0;
    ++compared;
    if (narrow.arena > budget) continue;
    // Known offsets give the same result as packing once more.
    const ArenaClaims kept = kept_claims(placed);
    const ArenaPacking packing = pack_arena(kept.requests, {.target_peak = budget});
    REQUIRE(packing.peak <= budget);
    const ScheduleOutcome again = fit_schedule(placed, {.budget = budget, .kept = packing.offsets});
    REQUIRE(again.fitted.has_value());
    CHECK(again.arena <= budget);
    CHECK(placed.step_seconds(again.fitted->schedule) <= waits * 1.5);
  }
  CHECK(compared == 600);
  CHECK(shorter > 20);
}

TEST_CASE("a placement that cannot be shorter, or does not fit, is not scheduled") {
  Random random(67);
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + 1_MiB;
    const SizedStep step = step_of(problem);
    const auto solution = solve(problem, {.budget = budget, .branches = false});
    REQUIRE(solution.has_value());
    const PlacedStep placed(step, problem, solution->placement);
    const double widest = widest_step_seconds(placed, budget);
    const ScheduleOutcome longer = fit_schedule(placed, {.budget = budget, .longest_step = widest});
    CHECK_FALSE(longer.fitted.has_value());
    CHECK(longer.arena == unlimited_arena);
    const Bytes little(budget.count() / 8);
    const ScheduleOutcome small = fit_schedule(placed, {.budget = little, .must_fit = true});
    if (small.fitted) continue;
    CHECK(small.arena > little);
    ++refused;
  }
  CHECK(refused > 100);
}

}  // namespace stowage
