#include "planner/solve/solve.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

TEST_CASE("solve: bound <= optimum <= plan on random problems") {
  constexpr unsigned seed = 31337;
  Random random(seed);
  int optimal = 0;
  int proved = 0;
  int constrained = 0;
  double worst = 1;
  constexpr int rounds = 2000;
  for (int round = 0; round < rounds; ++round) {
    INFO("seed ", seed, " round ", round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 14) << 20);
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    REQUIRE(best.has_value());
    const Result<Solution> solution = solve(problem, {.budget = budget, .target_gap = 0});
    REQUIRE(solution.has_value());
    const Evaluation evaluation = evaluate(problem, solution->placement);
    REQUIRE(evaluation.inconsistency == "");
    REQUIRE(evaluation.peak <= budget);
    REQUIRE(evaluation.cost_seconds == solution->evaluation.cost_seconds);
    REQUIRE(solution->cost_lower_bound_seconds <= *best * (1 + 1e-12));
    REQUIRE(evaluation.cost_seconds >= *best * (1 - 1e-12));
    REQUIRE(solution->all_gpu_cost_seconds <= *best);
    if (solution->proved_optimal) REQUIRE(evaluation.cost_seconds == doctest::Approx(*best));
    constrained += *best > solution->all_gpu_cost_seconds ? 1 : 0;
    proved += solution->proved_optimal ? 1 : 0;
    optimal += evaluation.cost_seconds <= *best * (1 + 1e-12) ? 1 : 0;
    if (*best > 0) worst = std::max(worst, evaluation.cost_seconds / *best);
  }
  MESSAGE(rounds, " problems, ", constrained, " where the budget binds: optimal ", optimal,
          ", proved so ", proved, ", worst ratio ", worst);
  CHECK(optimal > 0.98 * rounds);
  CHECK(proved > 0.98 * rounds);
}

TEST_CASE("solve: stopped at any moment it has a plan within the budget, and a bound") {
  Random random(5);
  int unfinished = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    REQUIRE(best.has_value());
    std::int64_t polls = below(random, 6);
    WorkBudget work(usual_work, {.cancelled = [&] { return polls-- <= 0; }, .out_of_time = {}});
    const Result<Solution> solution =
        solve(problem, {.budget = budget, .target_gap = 0, .work = &work});
    REQUIRE(solution.has_value());
    const Evaluation evaluation = evaluate(problem, solution->placement);
    REQUIRE(evaluation.inconsistency == "");
    REQUIRE(evaluation.peak <= budget);
    REQUIRE(solution->cost_lower_bound_seconds <= *best * (1 + 1e-12));
    REQUIRE(evaluation.cost_seconds >= *best * (1 - 1e-12));
    unfinished += solution->proved_optimal ? 0 : 1;
  }
  CHECK(unfinished > 20);
}

TEST_CASE("solve: no plan costs more than a start that fits") {
  Random random(23);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const Result<Solution> found = solve(problem, {.budget = budget, .target_gap = 0});
    REQUIRE(found.has_value());
    const Result<Solution> again =
        solve(problem,
              {.budget = budget, .target_gap = 0, .branches = false, .starts = {found->placement}});
    REQUIRE(again.has_value());
    CHECK(again->evaluation.cost_seconds <= found->evaluation.cost_seconds);
  }
}

TEST_CASE("solve: a limit of a single step holds there, and the bound is one within it") {
  Random random(271828);
  int bound_by_it = 0;
  for (int round = 0; round < 600; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 14) << 20);
    const std::vector<Bytes> floors = memory_floors(problem);
    std::vector<Bytes> limits(problem.operations.size(), budget);
    const auto step = static_cast<std::size_t>(below(random, std::ssize(limits)));
    limits[step] = floors[step] + Bytes(below(random, 6) << 20);
    const auto assignments = all_assignments(problem);
    const Result<Solution> solution =
        solve(problem, {.budget = budget, .limits = limits, .target_gap = 0});
    REQUIRE(solution.has_value());
    limits[step] = std::min(limits[step], budget);
    const auto best = cheapest_within(problem, assignments, limits);
    REQUIRE(best.has_value());
    const Evaluation evaluation = evaluate(problem, solution->placement);
    REQUIRE(evaluation.consistent);
    for (std::size_t t = 0; t < limits.size(); ++t) REQUIRE(evaluation.memory[t] <= limits[t]);
    REQUIRE(solution->cost_lower_bound_seconds <= *best * (1 + 1e-12));
    REQUIRE(evaluation.cost_seconds >= *best * (1 - 1e-12));
    bound_by_it += *best > *cheapest_within(problem, assignments, budget) ? 1 : 0;
  }
  CHECK(bound_by_it > 50);
}

}  // namespace stowage
