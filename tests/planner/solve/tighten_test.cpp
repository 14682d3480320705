#include "planner/solve/tighten.hpp"

#include <doctest/doctest.h>

#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

// No placement within the limits is lost. If one were, it would sooner or later be the cheapest at
// some prices.
TEST_CASE("tighten loses no placement within the limits, and rules some choices out") {
  Random random(99);
  int ruled_out = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const std::vector<Bytes> limits(problem.operations.size(), budget);
    const CutModel model = make_cut_model(problem, limits);
    Restrictions tightened = restrictions_of(problem);
    REQUIRE(tighten(model, tightened));
    // A choice that was ruled out, made a pin of the problem: nothing fits, or nothing cheaper.
    for (std::size_t t = 0; t < problem.operations.size(); ++t) {
      if (problem.operations[t].pin == tightened.device[t]) continue;
      ++ruled_out;
      ResidencyProblem forced = problem;
      forced.operations[t].pin = tightened.device[t] == Pin::cpu ? Pin::gpu : Pin::cpu;
      CHECK_FALSE(cheapest_within(forced, all_assignments(forced), limits).has_value());
    }
    for (const DeviceAssignment& assignment : all_assignments(problem)) {
      for (std::size_t item = 0; item < problem.items.size(); ++item) {
        for (const ItemChoice& choice : assignment.choices[item]) {
          bool fits = true;
          for (std::size_t t = 0; t < limits.size(); ++t) {
            fits = fits && choice.memory[t] <= limits[t].count();
          }
          for (std::size_t gap = 0; gap < choice.resident.size() && fits; ++gap) {
            if (!choice.resident[gap] || tightened.gap[item][gap] != GapPin::dropped) continue;
            // This choice of the item alone: nothing else of the problem fits beside it.
            DeviceAssignment alone = assignment;
            alone.choices[item] = {choice};
            CHECK_FALSE(cheapest_within(problem, {alone}, limits).has_value());
          }
        }
      }
    }
  }
  CHECK(ruled_out > 50);
}

TEST_CASE("tighten finds that what a branch decided does not fit") {
  ResidencyProblem problem;
  for (const char* name : {"make", "between", "use"}) {
    problem.operations.push_back({.name = name, .engines = {{1, Bytes()}}, .pin = Pin::gpu});
  }
  for (const char* name : {"a", "b"}) {
    problem.items.push_back({.name = name,
                             .bytes = 6_MiB,
                             .touches = {{0, false, true}, {2, true, false}},
                             .h2d_seconds = 1,
                             .d2h_seconds = 1});
  }
  problem.items.back().touches = {{1, false, true}, {2, true, false}};
  const CutModel model = make_cut_model(problem, {12_MiB, 8_MiB, 12_MiB});
  Restrictions restrictions = restrictions_of(problem);
  REQUIRE(tighten(model, restrictions));
  CHECK(restrictions.gap[0][0] == GapPin::dropped);  // 'b' is at step 1 for certain
  CHECK(restrictions.gap[1][0] == GapPin::free);
  restrictions.gap[0][0] = GapPin::resident;
  CHECK_FALSE(tighten(model, restrictions));
}

}  // namespace stowage
