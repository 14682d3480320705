// Pinned gaps: the solver against all placements, as without them.
#include <doctest/doctest.h>

#include "planner/problem/versions.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

namespace {

// Resident only where the definition allows it whatever free operations choose.
void pin_gaps(ResidencyProblem& problem, Random& random) {
  const auto holds = [&](const Touch& touch) {
    return !touch.writes ||
           problem.operations[static_cast<std::size_t>(touch.step)].pin == Pin::gpu;
  };
  for (Item& item : problem.items) {
    if (below(random, 2) == 0) continue;
    for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
      const std::size_t next = (static_cast<std::size_t>(gap) + 1) % item.touches.size();
      const bool may_stay = item.touches[next].reads && holds(item.touches[next]) &&
                            holds(item.touches[static_cast<std::size_t>(gap)]);
      const std::int64_t kind = below(random, 3);
      item.gap_pins.push_back(kind == 0               ? GapPin::dropped
                              : kind == 1 && may_stay ? GapPin::resident
                                                      : GapPin::free);
    }
  }
}

}  // namespace

TEST_CASE("solve: with pinned gaps too the bound is one, and the plan keeps to them") {
  constexpr unsigned seed = 4711;
  Random random(seed);
  int pinned = 0, optimal = 0;
  constexpr int rounds = 1200;
  for (int round = 0; round < rounds; ++round) {
    INFO("seed ", seed, " round ", round);
    ResidencyProblem problem = random_problem(random);
    pin_gaps(problem, random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 10) << 20);
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    REQUIRE(best.has_value());
    const Result<Solution> solution = solve(problem, {.budget = budget, .target_gap = 0});
    REQUIRE(solution.has_value());
    const Evaluation evaluation = evaluate(problem, solution->placement);
    REQUIRE(evaluation.inconsistency == "");
    REQUIRE(evaluation.peak <= budget);
    REQUIRE(solution->cost_lower_bound_seconds <= *best * (1 + 1e-12));
    REQUIRE(evaluation.cost_seconds >= *best * (1 - 1e-12));
    REQUIRE(solution->all_gpu_cost_seconds <= *best);
    optimal += evaluation.cost_seconds <= *best * (1 + 1e-12) ? 1 : 0;
    for (const Item& item : problem.items) {
      for (const GapPin pin : item.gap_pins) pinned += pin == GapPin::free ? 0 : 1;
    }
  }
  CHECK(pinned > rounds / 2);
  CHECK(optimal > 0.98 * rounds);
}

TEST_CASE("a placement against a gap's pin is inconsistent") {
  ResidencyProblem problem;
  problem.operations.push_back({.name = "a", .engines = {{}}, .pin = Pin::gpu});
  problem.operations.push_back({.name = "b", .engines = {{}}, .pin = Pin::gpu});
  Item item{.name = "x", .bytes = Bytes(8), .touches = {{0, true, false}, {1, true, false}}};
  item.host_at_start = true;
  item.h2d_seconds = 1;
  item.gap_pins = {GapPin::dropped};
  problem.items.push_back(item);
  Placement placement{{Device::gpu, Device::gpu}, {0, 0}, {{true, true}}, {{true}}};
  CHECK(evaluate(problem, placement).inconsistency == "'x' is pinned to be dropped after step 0");
  placement.resident = {{false}};
  CHECK(evaluate(problem, placement).cost_seconds == 2);
  problem.items[0].gap_pins = {GapPin::resident};
  CHECK(evaluate(problem, placement).inconsistency == "'x' is pinned to be resident after step 0");
  CHECK(memory_floors(problem) == std::vector<Bytes>{Bytes(8), Bytes(8)});
  problem.items[0].gap_pins = {GapPin::free, GapPin::free};
  CHECK(ill_formed(problem) == "'x' has pins for 2 of its 1 gaps");
}

}  // namespace stowage
