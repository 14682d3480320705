#include "estimator/base/live_sum.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <random>

using namespace stowage;

TEST_CASE("a live sum equals counting step by step") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto steps = static_cast<std::int32_t>(random() % 12);
    LiveSum sum(steps);
    REQUIRE(sum.steps() == steps);
    std::vector<Bytes> naive(static_cast<std::size_t>(steps));
    for (unsigned i = 0; i < random() % 10; ++i) {
      const auto any = [&] { return static_cast<std::int32_t>(random() % (steps + 1U)); };
      const StepRange range{any(), any()};  // often empty
      const Bytes bytes(static_cast<std::int64_t>(random() % 100));
      sum.add(range, bytes);
      for (std::int32_t t = 0; t < steps; ++t) {
        if (range.contains(t)) naive[static_cast<std::size_t>(t)] += bytes;
      }
    }
    CHECK(std::move(sum).by_step() == naive);
  }
}

TEST_CASE("the peak is at the first step of the largest sum") {
  const std::vector<Bytes> live = {1_B, 7_B, 3_B, 7_B};
  CHECK(peak(live).bytes == 7_B);
  CHECK(peak(live).step == 1);
  CHECK(peak({}).bytes == 0_B);
  CHECK(peak({}).step == 0);
}

TEST_CASE("a live sum past 64 bits throws; large ranges one after the other do not") {
  const Bytes huge(std::numeric_limits<std::int64_t>::max());
  LiveSum in_turn(2);
  in_turn.add({0, 1}, huge);
  in_turn.add({1, 2}, huge);
  CHECK(peak(std::move(in_turn).by_step()).bytes == huge);
  LiveSum together(3);
  together.add({0, 2}, huge);
  together.add({1, 3}, huge);
  CHECK_THROWS_AS((void)std::move(together).by_step(), ArithmeticOverflow);
}
