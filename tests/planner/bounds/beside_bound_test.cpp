#include "planner/bounds/beside_bound.hpp"

#include <doctest/doctest.h>

#include "planner/solve/split_bound.hpp"
#include "tests/planner/bounds/bound_problems.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage::test {

TEST_CASE("beside bound: it is what the planner's bound by two sides says") {
  Random random(31);
  int compared = 0;
  for (int round = 0; round < 4000; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    // Compute is quick and mostly pinned, so that copies decide.
    for (Operation& operation : problem.operations) {
      if (below(random, 4) != 0) operation.pin = Pin::gpu;
      for (EngineCost& engine : operation.engines) engine.seconds /= 64;
    }
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 4) << 20);
    const SplitBound split = split_bound(problem, budget);
    if (split.node < 0) continue;
    ++compared;
    const double again = beside_bound(bound_problem_of(problem, budget), split.node,
                                      split.downloads, split.uploads, split.cpu);
    REQUIRE(again >= split.seconds);
    REQUIRE(again <= split.seconds * (1 + 1e-8));
  }
  CHECK(compared > 200);
}

TEST_CASE("beside bound: what has to be away is downloaded before and uploaded after") {
  // Two results of 1 MiB are made before node 2 and read after it; one fits.
  BoundProblem problem;
  for (int i = 0; i < 5; ++i) problem.nodes.push_back({.engines = {{1, 0}}, .side = Side::gpu});
  for (std::int32_t i = 0; i < 2; ++i) {
    problem.items.push_back({.number = i,
                             .bytes = 1 << 20,
                             .touches = {{i, false, true}, {4 - i, true, false}},
                             .upload = 30,
                             .download = 10,
                             .gaps = {Side::open}});
  }
  problem.limit = 1 << 20;
  CHECK(beside_bound(problem, 2, 0, 0, 0) == 5);
  CHECK(beside_bound(problem, 2, 1, 1, 0) == 1 + 10 + 30);
  CHECK(beside_bound(problem, 2, 1, 0, 0) == 1 + 10 + 2);
  // A node that may be on the CPU, where it takes 16 s, counts by the cheaper side; what it reads
  // is away at no cost.
  problem.nodes.back().cpu_cost = 16;
  problem.nodes.back().side = Side::open;
  CHECK(beside_bound(problem, 2, 1, 0, 0.125) == 0.875 * (1 + 2));
  CHECK(beside_bound(problem, 2, 1, 0, 0.03125) == 0.96875 * (1 + 1) + 0.5);
  problem.nodes.back().side = Side::away;
  CHECK(beside_bound(problem, 2, 1, 0, 0.125) == 0.875 * (1 + 1) + 2);
  problem.nodes.back().side = Side::gpu;
  problem.limit = 1 << 19;
  CHECK(beside_bound(problem, 2, 1, 1, 0) == 1 + 1.5 * (10 + 30));
  problem.items.front().gaps = {Side::gpu};
  CHECK(beside_bound(problem, 2, 1, 1, 0) == 1 + 10 + 30);
}

}  // namespace stowage::test
