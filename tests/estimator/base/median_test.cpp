#include "estimator/base/median.hpp"

#include <doctest/doctest.h>

namespace stowage {

TEST_CASE("of an even number of values either of the two in the middle is the median") {
  CHECK(median({4, 1, 3, 2}, MiddleValue::lower) == 2);
  CHECK(median({4, 1, 3, 2}, MiddleValue::upper) == 3);
  for (const MiddleValue middle : {MiddleValue::lower, MiddleValue::upper}) {
    CHECK(median({7}, middle) == 7);
    CHECK(median({9, 1, 5}, middle) == 5);
    CHECK(median({2, 2, 2, 8}, middle) == 2);
  }
}

}  // namespace stowage
