// One test a rule, with the figures worked out by hand.
#include "estimator/allocator/best_fit_allocator.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

struct BestFitOnCard {
  explicit BestFitOnCard(Bytes total, const BestFitSettings& settings)
      : device(total), allocator(settings, device, "pool") {}
  BlockId take(Bytes bytes) {
    const auto block = allocator.allocate(bytes);
    REQUIRE(block.has_value());
    return *block;
  }
  [[nodiscard]] Bytes reserved() const { return allocator.statistics().reserved.current; }
  [[nodiscard]] Bytes allocated() const { return allocator.statistics().allocated.current; }

  DeviceMemory device;
  BestFitAllocator allocator;
};

constexpr BestFitSettings cnmem{.granularity = 512_B, .preallocated = 8_MiB};
constexpr BestFitSettings gpuarray{.granularity = 64_B, .least_segment = 4_MiB};
constexpr BestFitSettings uncached{.granularity = 512_B, .caches = false};

}  // namespace

TEST_CASE("best fit: no bytes take nothing") {
  BestFitOnCard card(1_GiB, gpuarray);
  const BlockId none = card.take(0_B);
  CHECK_FALSE(none.valid());
  card.allocator.free(none);
  CHECK(card.allocator.statistics() == AllocatorStatistics{});
}

TEST_CASE("best fit: what is preallocated is taken at once and grown by what is wanted") {
  BestFitOnCard card(1_GiB, cnmem);
  REQUIRE(card.allocator.preallocate());
  CHECK(card.reserved() == 8_MiB);
  card.take(1_B);
  CHECK(card.allocated() == 512_B);
  CHECK(card.reserved() == 8_MiB);
  card.take(8_MiB);  // 512 bytes are missing
  CHECK(card.reserved() == 16_MiB);
}

TEST_CASE("best fit: more than the card has cannot be preallocated") {
  BestFitOnCard card(4_MiB, cnmem);
  CHECK_FALSE(card.allocator.preallocate());
  CHECK(card.device.free() == 4_MiB);
}

TEST_CASE("best fit: the driver is asked for 4 MiB at least, and keeps nothing back") {
  BestFitOnCard card(1_GiB, gpuarray);
  const BlockId small = card.take(65_B);
  CHECK(card.allocated() == 128_B);
  CHECK(card.reserved() == 4_MiB);
  const BlockId large = card.take(6_MiB);
  CHECK(card.reserved() == 10_MiB);
  card.allocator.free(small);
  card.allocator.free(large);
  CHECK(card.allocated() == 0_B);
  CHECK(card.reserved() == 10_MiB);
  // Two pieces of the driver's never join.
  card.take(8_MiB);
  CHECK(card.reserved() == 18_MiB);
}

TEST_CASE("best fit: the smallest block that is large enough, and freed neighbours join") {
  BestFitOnCard card(1_GiB, gpuarray);
  const BlockId a = card.take(1_MiB), b = card.take(1_MiB), c = card.take(2_MiB);
  card.allocator.free(a);
  card.allocator.free(b);
  card.allocator.free(c);
  card.take(4_MiB);
  CHECK(card.reserved() == 4_MiB);
}

TEST_CASE("best fit: without a cache every block goes back to the driver") {
  BestFitOnCard card(64_MiB, uncached);
  const BlockId large = card.take(3_MiB);
  CHECK(card.device.used() == 4_MiB);
  card.allocator.free(large);
  CHECK(card.reserved() == 0_B);
  CHECK(card.device.used() == 0_B);
  // Small pieces share the driver's page, which it keeps.
  const BlockId first = card.take(1000_B);
  card.take(1000_B);
  CHECK(card.reserved() == 2048_B);
  CHECK(card.device.used() == 2_MiB);
  card.allocator.free(first);
  CHECK(card.device.used() == 2_MiB);
}

TEST_CASE("best fit: a refusal says what was asked for, and changes nothing") {
  BestFitOnCard card(16_MiB, gpuarray);
  card.take(10_MiB);
  const auto refused = card.allocator.allocate(7_MiB);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().requested == 7_MiB);
  CHECK(refused.error().free == 6_MiB);
  CHECK(card.reserved() == 10_MiB);
  CHECK(card.allocator.statistics().ooms == 1);
}

}  // namespace stowage
