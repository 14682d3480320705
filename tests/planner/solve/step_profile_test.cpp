#include "planner/solve/step_profile.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/planner/solve/random_problems.hpp"

namespace stowage {

TEST_CASE("step profile: additions and maxima equal those of a plain array") {
  Random random(12);
  INFO("seed 12");
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> plain;
    const std::int64_t steps = 1 + below(random, 40);
    for (std::int64_t i = 0; i < steps; ++i) plain.push_back(below(random, 100) - 50);
    StepProfile profile(plain);
    for (int change = 0; change < 50; ++change) {
      const auto begin = static_cast<std::int32_t>(below(random, steps + 1));
      const auto end = static_cast<std::int32_t>(below(random, steps + 1));
      const std::int64_t amount = below(random, 21) - 10;
      profile.add({begin, end}, amount);
      for (std::int32_t i = begin; i < end; ++i) plain[static_cast<std::size_t>(i)] += amount;
      const auto most = std::max_element(plain.begin(), plain.end());
      REQUIRE(profile.largest() == *most);
      REQUIRE(profile.largest_at() == most - plain.begin());
      std::int64_t in_range = std::numeric_limits<std::int64_t>::min();
      for (std::int32_t i = begin; i < end; ++i) {
        in_range = std::max(in_range, plain[static_cast<std::size_t>(i)]);
      }
      REQUIRE(profile.largest({begin, end}) == in_range);
    }
  }
}

}  // namespace stowage
