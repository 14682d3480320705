#include "estimator/base/step_range.hpp"

#include <doctest/doctest.h>

using namespace stowage;

TEST_CASE("a range of steps holds its begin and not its end") {
  const StepRange range{2, 5};
  CHECK(range.length() == 3);
  CHECK_FALSE(range.empty());
  CHECK_FALSE(range.contains(1));
  CHECK(range.contains(2));
  CHECK(range.contains(4));
  CHECK_FALSE(range.contains(5));
  CHECK(StepRange::single(7) == StepRange{7, 8});
  CHECK(StepRange{3, 3}.empty());
  CHECK(StepRange{4, 3}.empty());
  CHECK_FALSE(StepRange{4, 3}.contains(3));
}

TEST_CASE("ranges of steps overlap exactly where some step is in both") {
  for (std::int32_t a = 0; a < 5; ++a) {
    for (std::int32_t b = 0; b < 5; ++b) {
      for (std::int32_t c = 0; c < 5; ++c) {
        for (std::int32_t d = 0; d < 5; ++d) {
          const StepRange left{a, b}, right{c, d};
          bool shared = false;
          for (std::int32_t t = 0; t < 5; ++t) {
            shared = shared || (left.contains(t) && right.contains(t));
          }
          CHECK(left.overlaps(right) == shared);
        }
      }
    }
  }
}
