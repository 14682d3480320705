#include "planner/assemble/lower_limits.hpp"

#include <doctest/doctest.h>

using namespace stowage;

namespace {

constexpr Bytes budget = 256_KiB;

StepLimits whole(std::size_t steps) { return StepLimits(steps, budget); }

}  // namespace

TEST_CASE("a conflict is lowered at one of its three steps") {
  Overflow overflow;
  overflow.bound.excess[0] = {0_B, 512_B, 0_B};
  overflow.bound.excess[2] = {0_B, 0_B, 1'024_B};
  const auto ways = tightened_limits(whole(3), overflow, budget);
  REQUIRE(ways.size() == 2);
  CHECK(ways[0] == StepLimits{budget, budget - 512_B, budget});
  CHECK(ways[1] == StepLimits{budget, budget, budget - 1'024_B});
}

TEST_CASE("a limit that is low enough already is not tightened") {
  Overflow overflow;
  overflow.bound.excess[0] = {512_B, 0_B};
  CHECK(tightened_limits({budget - 512_B, budget}, overflow, budget).empty());
}

TEST_CASE("all steps give the excess, else stretches that are too full one at a time, else half") {
  Overflow overflow;
  overflow.arena = budget + 1'024_B;
  overflow.beyond.assign(20, 512_B);
  overflow.memory.assign(20, 0_B);
  overflow.memory[2] = budget - 256_B;
  overflow.memory[15] = budget;
  const auto ways = tightened_limits(whole(20), overflow, budget);
  REQUIRE(ways.size() == 4);
  CHECK(ways[0] == StepLimits(20, budget - 512_B));
  CHECK(ways[1][15] == budget - 1'024_B);  // the fullest first
  CHECK(ways[1][2] == budget);
  CHECK(ways[2][2] == budget - 1'280_B);  // below what it has
  CHECK(ways[2][15] == budget);
  CHECK(ways[3] == StepLimits(20, budget - 256_B));
}

TEST_CASE("where much is missing, a quarter and an eighth of it are tried as well") {
  Overflow overflow;
  overflow.arena = budget + 16_KiB;
  overflow.beyond = {16_KiB, 0_B};
  overflow.memory = {budget, 0_B};
  const auto ways = tightened_limits(whole(2), overflow, budget);
  REQUIRE(ways.size() == 4);
  for (const auto& [way, less] : {std::pair{0, 16_KiB}, {1, 2_KiB}, {2, 4_KiB}, {3, 8_KiB}}) {
    const StepLimits& limits = ways[static_cast<std::size_t>(way)];
    CHECK(limits == StepLimits{budget - less, budget});
  }
}

TEST_CASE("limits of all steps fall by the excess, a sixty-fourth of the budget at least") {
  CHECK(lowered_everywhere(whole(2), 256_B, budget) ==
        StepLimits(2, budget - Bytes(budget.count() / 64)));
  const Bytes half(budget.count() / 2);
  CHECK(lowered_everywhere(whole(2), half, budget) == StepLimits(2, half));
  CHECK(halfway(whole(1), {half}) == StepLimits{Bytes(budget.count() * 3 / 4)});
}
