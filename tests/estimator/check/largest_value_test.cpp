// The search for the largest value, with and without an estimate.
#include "estimator/check/largest_value.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

std::int64_t largest_up_to(std::int64_t limit, std::int64_t error, int& asked) {
  const auto fits = [&](std::int64_t value) -> Result<bool> {
    ++asked;
    return value <= limit;
  };
  const auto found = find_largest_value(1 << 20, fits, [&](std::int64_t) { return limit + error; });
  REQUIRE(found.has_value());
  return found->value;
}

}  // namespace

TEST_CASE("an estimate changes how many values are asked about, and not the one that is found") {
  for (std::int64_t limit = 0; limit < 300; ++limit) {
    for (const std::int64_t error : {-1000, -17, -1, 0, 1, 5, 1000}) {
      CAPTURE(limit);
      CAPTURE(error);
      int asked = 0;
      CHECK(largest_up_to(limit, error, asked) == limit);
      CHECK(asked <= 40);
    }
  }
}

TEST_CASE("a good estimate leaves few questions behind the doubling") {
  int asked = 0;
  CHECK(largest_up_to(300'000, 1, asked) == 300'000);
  CHECK(asked < 36);
  asked = 0;
  CHECK(largest_up_to(100, 0, asked) == 100);
  CHECK(asked == 10);  // 1, 2, 4, ... 128: eight; then 100 and 101
}

}  // namespace stowage
