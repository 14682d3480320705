#include "estimator/base/batch.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <limits>

#include "estimator/base/bytes.hpp"

using namespace stowage;

// A batch of the one kind cannot be given where the other is wanted.
static_assert(!std::convertible_to<std::int64_t, WholeBatch>);
static_assert(!std::convertible_to<WholeBatch, std::int64_t>);

TEST_CASE("micro-batches share a whole batch equally or not at all") {
  CHECK(micro_batch_of(WholeBatch(24), 3) == 8);
  CHECK(micro_batch_of(WholeBatch(24), 1) == 24);
  CHECK(micro_batch_of(WholeBatch(24), 5) == std::nullopt);
  CHECK(micro_batch_of(WholeBatch(4), 8) == std::nullopt);
}

TEST_CASE("a whole batch is what its micro-batches have together") {
  CHECK(whole_batch_of(8, 3) == WholeBatch(24));
  for (std::int64_t parts = 1; parts < 10; ++parts) {
    CHECK(micro_batch_of(whole_batch_of(7, parts), parts) == 7);
  }
  CHECK_THROWS_AS((void)whole_batch_of(std::numeric_limits<std::int64_t>::max(), 2),
                  ArithmeticOverflow);
}
