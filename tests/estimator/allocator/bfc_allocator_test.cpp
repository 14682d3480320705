// One test a rule, with the figures worked out by hand.
#include "estimator/allocator/bfc_allocator.hpp"

#include <doctest/doctest.h>

namespace stowage {

namespace {

struct BfcOnCard {
  explicit BfcOnCard(Bytes total, const BfcSettings& settings, Bytes in_use = {})
      : device(total, in_use), allocator(settings, device) {}
  BlockId take(Bytes bytes) {
    const auto chunk = allocator.allocate(bytes);
    REQUIRE(chunk.has_value());
    return *chunk;
  }
  OutOfMemory refused(Bytes bytes) {
    const auto chunk = allocator.allocate(bytes);
    REQUIRE_FALSE(chunk.has_value());
    return chunk.error();
  }
  [[nodiscard]] const AllocatorStatistics& now() const { return allocator.statistics(); }

  DeviceMemory device;
  BfcAllocator allocator;
};

BfcSettings whole(Bytes limit) { return {.memory_limit = limit}; }
BfcSettings growing(Bytes limit) { return {.memory_limit = limit, .allow_growth = true}; }

}  // namespace

TEST_CASE("BFC: no bytes take nothing") {
  BfcOnCard card(1_GiB, whole(512_MiB));
  const BlockId none = card.take(0_B);
  CHECK_FALSE(none.valid());
  card.allocator.free(none);
  CHECK(card.now() == AllocatorStatistics{});
}

TEST_CASE("BFC: without growth the whole limit is one region, taken at the first use") {
  BfcOnCard card(1_GiB, whole(512_MiB));
  CHECK(card.device.free() == 1_GiB);
  card.take(1_B);
  CHECK(card.now().reserved.current == 512_MiB);
  CHECK(card.device.free() == 512_MiB);
  CHECK(card.now().allocated.current == 256_B);
  CHECK(card.now().requested.current == 1_B);
  CHECK(card.now().inactive_split.current == 512_MiB - 256_B);
}

TEST_CASE("BFC: limits that are no multiple of 256 bytes are rounded down") {
  BfcOnCard card(1_GiB, whole(10000000_B));
  card.take(1_B);
  CHECK(card.now().reserved.current == 9999872_B);
  CHECK(card.device.used() == 10_MiB);
}

TEST_CASE("BFC: a region that is not doubled within 64 bits is not doubled") {
  const Bytes limit(std::int64_t{1} << 62);
  BfcOnCard card(limit, whole(limit));
  card.take(1_B);
  CHECK(card.now().reserved.current == limit);
}

TEST_CASE("BFC: growth doubles from 2 MiB, or to what holds the request") {
  BfcOnCard card(1_GiB, growing(512_MiB));
  card.take(1_MiB);
  CHECK(card.now().reserved.current == 2_MiB);
  card.take(1_MiB);  // the chunk of 2 MiB was split at twice the size
  CHECK(card.now().reserved.current == 2_MiB);
  card.take(1_MiB);  // 4 MiB next
  CHECK(card.now().reserved.current == 6_MiB);
  card.take(20_MiB);  // 8, 16, 32
  CHECK(card.now().reserved.current == 38_MiB);
  card.take(33_MiB);  // 64: the request's own doubling is not doubled again
  CHECK(card.now().reserved.current == 102_MiB);
  card.take(60_MiB);
  CHECK(card.now().reserved.current == 166_MiB);
  card.take(64_MiB);  // 128
  CHECK(card.now().reserved.current == 294_MiB);
  CHECK(card.now().segments.current == 6);
}

TEST_CASE("BFC: growth is cut to what the limit leaves") {
  BfcOnCard card(1_GiB, growing(100_MiB));
  card.take(60_MiB);  // 64
  card.take(30_MiB);  // 128 would be next, 36 are left
  CHECK(card.now().reserved.current == 100_MiB);
  const OutOfMemory failure = card.refused(10_MiB);
  CHECK(failure.tried == 10_MiB);
  CHECK(failure.allowed == 100_MiB);
  CHECK(failure.allocated == 100_MiB);  // 64 and 36, neither split
  CHECK(card.now().ooms == 1);
  CHECK(card.device.free() == 924_MiB);
}

TEST_CASE("BFC: a limit below 2 MiB") {
  BfcOnCard card(1_GiB, growing(1_MiB));
  card.take(1_KiB);
  CHECK(card.now().reserved.current == 1_MiB);
}

TEST_CASE("BFC: where the driver refuses, a tenth less until it does not") {
  // 900 MiB are free; 1024 * 0.9 = 921.6, again * 0.9 = 829.44 MiB, each rounded up to 256 bytes.
  BfcOnCard card(1_GiB, whole(1_GiB), 124_MiB);
  card.take(1_B);
  CHECK(card.now().reserved.current == 869731072_B);
  CHECK(card.device.free() == 900_MiB - 830_MiB);
  // Not below the request.
  BfcOnCard small(1_GiB, whole(1_GiB), 124_MiB);
  const OutOfMemory failure = small.refused(870_MiB);
  CHECK(failure.reserved == 0_B);
  CHECK(failure.free == 900_MiB);
}

TEST_CASE("BFC: a chunk is split at twice the size, or 128 MiB more") {
  BfcOnCard card(1_GiB, whole(512_MiB));
  card.take(300_MiB);  // 212 left: split, by the 128 MiB
  CHECK(card.now().allocated.current == 300_MiB);
  card.take(106_MiB + 256_B);  // of 212: neither
  CHECK(card.now().allocated.current == 512_MiB);
  CHECK(card.now().inactive_split.current == 0_B);

  BfcOnCard half(1_GiB, whole(512_MiB));
  half.take(300_MiB);
  half.take(106_MiB);  // twice
  CHECK(half.now().allocated.current == 406_MiB);

  BfcOnCard edge(1_GiB, whole(384_MiB));
  const BlockId chunk = edge.take(256_MiB);  // exactly 128 MiB more
  CHECK(edge.allocator.size_of(chunk) == 256_MiB);
  BfcOnCard inside(1_GiB, whole(384_MiB));
  CHECK(inside.allocator.size_of(inside.take(256_MiB + 256_B)) == 384_MiB);
}

TEST_CASE("BFC: the excess as a share of the limit") {
  BfcSettings settings = whole(400_MiB);
  settings.fragmentation_fraction = 0.1;
  BfcOnCard card(1_GiB, settings);
  card.take(360_MiB);  // 40 more: split
  CHECK(card.now().allocated.current == 360_MiB);
  BfcOnCard other(1_GiB, settings);
  other.take(360_MiB + 1_B);
  CHECK(other.now().allocated.current == 400_MiB);
}

TEST_CASE("BFC: best fit, and the lowest of equal ones") {
  BfcOnCard card(1_GiB, whole(100_MiB));
  const BlockId a = card.take(10_MiB);
  card.take(1_MiB);
  const BlockId b = card.take(4_MiB);
  card.take(1_MiB);
  const BlockId c = card.take(4_MiB);
  card.take(1_MiB);
  for (const BlockId chunk : {a, b, c}) card.allocator.free(chunk);
  // 3 MiB: the 4 before the 10 before the 79, though all are free, and not split.
  CHECK(card.allocator.size_of(card.take(3_MiB)) == 4_MiB);
  CHECK(card.allocator.size_of(card.take(3_MiB)) == 4_MiB);
  CHECK(card.allocator.size_of(card.take(3_MiB)) == 3_MiB);  // of the 10
  CHECK(card.allocator.largest_free_chunk() == 79_MiB);
}

TEST_CASE("BFC: frees merge with both neighbours, regions do not") {
  BfcOnCard card(1_GiB, whole(90_MiB));
  const BlockId a = card.take(10_MiB);
  const BlockId b = card.take(10_MiB);
  const BlockId c = card.take(10_MiB);
  card.allocator.free(a);
  card.allocator.free(c);
  CHECK(card.now().inactive_split.current == 80_MiB);
  CHECK(card.allocator.largest_free_chunk() == 70_MiB);
  card.allocator.free(b);
  CHECK(card.allocator.largest_free_chunk() == 90_MiB);
  CHECK(card.now().inactive_split.current == 0_B);
  CHECK(card.now().reserved.current == 90_MiB);

  BfcOnCard grown(1_GiB, growing(1_GiB));
  const BlockId first = grown.take(2_MiB);
  const BlockId second = grown.take(4_MiB);
  grown.allocator.free(first);
  grown.allocator.free(second);
  CHECK(grown.allocator.largest_free_chunk() == 4_MiB);
}

TEST_CASE("BFC: before it gives up, free regions go back and make room for a larger one") {
  BfcOnCard card(1_GiB, growing(100_MiB));
  const BlockId a = card.take(30_MiB);  // 32
  const BlockId b = card.take(60_MiB);  // 64
  card.allocator.free(a);
  card.allocator.free(b);
  CHECK(card.now().reserved.current == 96_MiB);
  card.take(90_MiB);
  CHECK(card.now().alloc_retries == 1);
  CHECK(card.now().device_releases == 2);
  CHECK(card.now().reserved.current == 100_MiB);

  BfcSettings settings = growing(100_MiB);
  settings.garbage_collection = false;
  BfcOnCard other(1_GiB, settings);
  other.allocator.free(other.take(30_MiB));
  CHECK(other.refused(90_MiB).reserved == 32_MiB);
}

TEST_CASE("BFC: free regions stay where they would not be enough") {
  BfcOnCard card(1_GiB, growing(100_MiB));
  card.take(60_MiB);
  card.allocator.free(card.take(36_MiB));
  CHECK(card.refused(50_MiB).reserved == 100_MiB);
  CHECK(card.now().device_releases == 0);
}

TEST_CASE("BFC: in TensorFlow's words") {
  BfcOnCard card(1_GiB, whole(10_MiB));
  CHECK(tensorflow_message(card.refused(20000001_B)) ==
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 19.07MiB (rounded to "
        "20000256)");
  CHECK(tensorflow_size(1023_B) == "1023B");
  CHECK(tensorflow_size(1536_B) == "1.5KiB");
  CHECK(tensorflow_size(1_MiB - 1_B) == "1024.0KiB");
  CHECK(tensorflow_size(1_GiB) == "1.00GiB");
}

}  // namespace stowage
