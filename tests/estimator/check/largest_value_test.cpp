// The search for the largest value, from every guess.
#include "estimator/check/largest_value.hpp"

#include <doctest/doctest.h>

#include <set>

namespace stowage {

TEST_CASE("the largest value that fits is found from every guess") {
  constexpr std::int64_t most = 40;
  for (std::int64_t limit = 0; limit <= most; ++limit) {
    for (std::int64_t guess = -1; guess <= most + 2; ++guess) {
      CAPTURE(limit);
      CAPTURE(guess);
      std::set<std::int64_t> asked;
      const auto found = find_largest_value(
          most,
          [&](std::int64_t value) -> Result<bool> {
            CHECK((value >= 1 && value <= most));
            CHECK(asked.insert(value).second);
            return value <= limit;
          },
          guess);
      REQUIRE(found.has_value());
      CHECK(found->value == limit);
      CHECK(found->reached_most == (limit == most));
    }
  }
}

TEST_CASE("a good guess of a large value takes few trials, and an error is a limit") {
  constexpr std::int64_t limit = 165'504;
  int trials = 0;
  const auto found = find_largest_value(
      1 << 24,
      [&](std::int64_t value) -> Result<bool> {
        ++trials;
        if (value > limit) return failure("no more positions");
        return true;
      },
      limit - 100);
  REQUIRE(found.has_value());
  CHECK(found->value == limit);
  CHECK(found->refused.front().message == "no more positions");
  CHECK(trials <= 12);
}

}  // namespace stowage
