// One test a rule, with the figures worked out by hand.
#include "estimator/allocator/caching_allocator.hpp"

#include <doctest/doctest.h>

#include "tests/estimator/allocator/allocator_on_card.hpp"

namespace stowage {

namespace {

constexpr StreamId side{1};

using Card = testing::AllocatorOnCard;

}  // namespace

TEST_CASE("No bytes take nothing") {
  Card card(1_GiB);
  const BlockId none = card.take(0_B);
  CHECK_FALSE(none.valid());
  card.allocator.record_stream(none, side);
  card.allocator.free(none);
  CHECK(card.now() == AllocatorStatistics{});
}

TEST_CASE("The first matrix product before Hopper: 8,519,680 bytes in a segment of 20 MiB") {
  // cuBLAS's workspace, as a user's log shows it (discuss.pytorch.org/t/178671).
  Card card(1_GiB);
  card.take(8519680_B);
  CHECK(card.now().allocated.current == 8519680_B);
  CHECK(card.now().reserved.current == 20971520_B);
  CHECK(card.now().inactive_split.current == 12451840_B);
  const auto segments = card.allocator.snapshot();
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].reserved == 20971520_B);
  REQUIRE(segments[0].blocks.size() == 2);
  CHECK(segments[0].blocks[0] == BlockSnapshot{0, 8519680_B, 8519680_B, BlockState::allocated});
  CHECK(segments[0].blocks[1] == BlockSnapshot{8519680, 12451840_B, 0_B, BlockState::inactive});
}

TEST_CASE("Hopper's workspace of 32 MiB has a segment of its own") {
  Card card(1_GiB);
  card.take(33554432_B);
  CHECK(card.now().reserved.current == 33554432_B);
  CHECK(card.now().inactive_split.current == 0_B);
}

TEST_CASE("1.5 MiB make a segment of 20 MiB and leave 18.5 MiB") {
  Card card(1_GiB);
  card.take(1536_KiB);
  CHECK(card.now().allocated.current == 1536_KiB);
  CHECK(card.now().reserved.current == 20_MiB);
  CHECK(card.now().inactive_split.current == 18944_KiB);
}

TEST_CASE("10.5 MiB make 12 MiB, and what is left is more than 1 MiB: split") {
  Card card(1_GiB);
  card.take(10752_KiB);
  CHECK(card.now().reserved.current == 12_MiB);
  CHECK(card.now().allocated.current == 10752_KiB);
  CHECK(card.now().inactive_split.current == 1536_KiB);
}

TEST_CASE("11.5 MiB make 12 MiB, and what is left is not: the request owns the whole") {
  Card card(1_GiB);
  const BlockId block = card.take(11776_KiB);
  CHECK(card.now().reserved.current == 12_MiB);
  CHECK(card.now().allocated.current == 12_MiB);
  CHECK(card.now().requested.current == 11776_KiB);
  CHECK(card.now().inactive_split.current == 0_B);
  CHECK(card.allocator.size_of(block) == 12_MiB);
}

TEST_CASE("In the large pool a remainder of exactly 1 MiB is not split off") {
  Card card(1_GiB);
  card.take(11_MiB);
  CHECK(card.now().allocated.current == 12_MiB);
  card.take(11534336_B - 512_B);  // one unit less: 1 MiB and 512 bytes left
  CHECK(card.now().allocated.current == 12_MiB + 11_MiB - 512_B);
}

TEST_CASE("In the small pool 512 bytes are split off") {
  Card card(1_GiB);
  card.take(1_MiB);
  card.take(1_MiB - 512_B);
  CHECK(card.now().allocated.current == 2_MiB - 512_B);
  CHECK(card.now().inactive_split.current == 512_B);
  card.take(1_B);
  CHECK(card.now().allocated.current == 2_MiB);
  CHECK(card.now().requested.current == 2_MiB - 512_B + 1_B);
  CHECK(card.now().inactive_split.current == 0_B);
  CHECK(card.now().reserved.current == 2_MiB);
  CHECK(card.now().segments.current == 1);
}

TEST_CASE("Pools by the rounded size: 1 MiB is small, one byte more is large") {
  Card card(1_GiB);
  card.take(1_MiB);
  CHECK(card.now().reserved.current == 2_MiB);
  card.take(1048577_B);
  CHECK(card.now().reserved.current == 22_MiB);
  // The large pool's remainder is not for small requests.
  card.take(1_MiB);
  card.take(1_MiB);
  CHECK(card.now().reserved.current == 24_MiB);
}

TEST_CASE("Best fit: the smallest that is large enough, of equal ones the lowest") {
  Card card(1_GiB);
  const BlockId wide = card.take(40_MiB);
  const BlockId first = card.take(30_MiB);
  const BlockId second = card.take(30_MiB);
  const auto segments = card.allocator.snapshot();
  card.allocator.free(second);
  card.allocator.free(wide);
  card.allocator.free(first);
  CHECK(card.now().allocated.current == 0_B);
  card.take(29_MiB);
  const auto after = card.allocator.snapshot();
  REQUIRE(after.size() == 3);
  CHECK(after[0].blocks[0].state == BlockState::inactive);
  CHECK(after[1].blocks[0].state == BlockState::allocated);
  CHECK(after[2].blocks[0].state == BlockState::inactive);
  CHECK(card.now().allocated.current == 30_MiB);  // 1 MiB is not split off
  CHECK(card.now().reserved.current == 100_MiB);
  CHECK(segments[1].address == after[1].address);
}

TEST_CASE("Freed blocks merge with both neighbours, within their segment only") {
  Card card(1_GiB);
  const BlockId a = card.take(5_MiB);
  const BlockId b = card.take(5_MiB);
  const BlockId c = card.take(10_MiB - 1_MiB);  // the rest of 10 MiB, whole
  CHECK(card.now().reserved.current == 20_MiB);
  CHECK(card.now().allocated.current == 20_MiB);
  card.allocator.free(a);
  CHECK(card.now().inactive_split.current == 5_MiB);
  card.allocator.free(c);
  CHECK(card.now().inactive_split.current == 15_MiB);
  card.allocator.free(b);
  CHECK(card.now().inactive_split.current == 0_B);  // one block again
  CHECK(card.now().inactive_split.peak == 15_MiB);
  CHECK(card.allocator.largest_cached_block() == 20_MiB);

  const BlockId other = card.take(20_MiB);
  CHECK(card.now().reserved.current == 20_MiB);
  const BlockId next = card.take(20_MiB);
  card.allocator.free(other);
  card.allocator.free(next);
  CHECK(card.allocator.largest_cached_block() == 20_MiB);  // the segments touch, and stay two
  card.take(40_MiB);
  CHECK(card.now().reserved.current == 80_MiB);
}

TEST_CASE("A free stays reserved until the cache is emptied, and split segments stay after that") {
  Card card(1_GiB);
  const BlockId a = card.take(12_MiB);
  const BlockId b = card.take(2_MiB);
  const BlockId c = card.take(2_MiB);
  CHECK(card.now().reserved.current == 32_MiB);
  card.allocator.free(a);
  card.allocator.free(b);
  CHECK(card.now().reserved.current == 32_MiB);
  card.allocator.empty_cache();
  CHECK(card.now().reserved.current == 20_MiB);
  CHECK(card.now().inactive_split.current == 18_MiB);
  card.allocator.free(c);
  card.allocator.empty_cache();
  CHECK(card.now().reserved.current == 0_B);
  CHECK(card.now().segments.current == 0);
  CHECK(card.now().segments.peak == 2);
  CHECK(card.device.free() == 1_GiB);
  CHECK(card.now().device_allocations == 2);
  CHECK(card.now().device_releases == 2);
}

TEST_CASE("Peaks are reset to what is now") {
  Card card(1_GiB);
  const BlockId a = card.take(30_MiB);
  card.take(1_B);
  card.allocator.free(a);
  CHECK(card.now().allocated.peak == 30_MiB + 512_B);
  CHECK(card.now().reserved.peak == 32_MiB);
  card.allocator.reset_peaks();
  CHECK(card.now().allocated.peak == 512_B);
  CHECK(card.now().requested.peak == 1_B);
  CHECK(card.now().reserved.peak == 32_MiB);
  CHECK(card.now().segments.peak == 2);
}

TEST_CASE("A stream does not get what was freed on another") {
  Card card(1_GiB);
  card.allocator.free(card.take(12_MiB));
  card.take(12_MiB, side);
  CHECK(card.now().reserved.current == 24_MiB);
  card.take(12_MiB);
  CHECK(card.now().reserved.current == 24_MiB);
}

TEST_CASE("A block that another stream uses stays active until that stream is done") {
  Card card(1_GiB);
  const BlockId block = card.take(12_MiB);
  card.allocator.record_stream(block, side);
  card.allocator.free(block);
  CHECK(card.now().allocated.current == 0_B);
  CHECK(card.now().active.current == 12_MiB);
  CHECK(card.now().requested.current == 12_MiB);
  CHECK(card.allocator.snapshot()[0].blocks[0].state == BlockState::awaiting_free);
  card.take(12_MiB);
  CHECK(card.now().reserved.current == 24_MiB);
  card.allocator.complete_events(side);
  CHECK(card.now().active.current == 24_MiB);  // seen at the next allocation
  card.take(12_MiB);
  CHECK(card.now().active.current == 24_MiB);
  CHECK(card.now().reserved.current == 24_MiB);
}

TEST_CASE("Two streams: both must be done; the home stream does not count") {
  Card card(1_GiB);
  const BlockId block = card.take(12_MiB);
  card.allocator.record_stream(block, default_stream);
  card.allocator.record_stream(block, side);
  card.allocator.record_stream(block, side);
  card.allocator.record_stream(block, StreamId{2});
  card.allocator.free(block);
  card.allocator.complete_events(side);
  card.take(1_B);
  CHECK(card.now().active.current == 12_MiB + 512_B);
  card.allocator.complete_events(StreamId{2});
  card.take(1_B);
  CHECK(card.now().active.current == 1024_B);

  const BlockId home = card.take(12_MiB);
  card.allocator.record_stream(home, default_stream);
  card.allocator.free(home);
  CHECK(card.now().active.current == 1024_B);
}

TEST_CASE("A stream's completion covers what was freed before it only") {
  Card card(1_GiB);
  const BlockId before = card.take(12_MiB);
  const BlockId after = card.take(14_MiB);
  card.allocator.record_stream(before, side);
  card.allocator.record_stream(after, side);
  card.allocator.free(before);
  card.allocator.complete_events(side);
  card.allocator.free(after);
  card.take(1_B);
  CHECK(card.now().active.current == 14_MiB + 512_B);
}

TEST_CASE("A waiting block does not merge") {
  Card card(1_GiB);
  const BlockId a = card.take(5_MiB);
  const BlockId b = card.take(5_MiB);
  card.allocator.record_stream(b, side);
  card.allocator.free(b);
  card.allocator.free(a);
  CHECK(card.now().inactive_split.current == 15_MiB);  // 5 before it, 10 after it
  CHECK(card.allocator.largest_cached_block() == 10_MiB);
  card.allocator.complete_events();
  card.allocator.empty_cache();
  CHECK(card.now().reserved.current == 0_B);
}

TEST_CASE("Emptying the cache waits for the streams") {
  Card card(1_GiB);
  const BlockId block = card.take(12_MiB);
  card.allocator.record_stream(block, side);
  card.allocator.free(block);
  card.allocator.empty_cache();
  CHECK(card.now().active.current == 0_B);
  CHECK(card.now().reserved.current == 0_B);
  CHECK(card.now().stream_synchronizations == 1);
}

TEST_CASE("Allocators and context on one card") {
  DeviceMemory device(64_MiB, 4_MiB);
  const HolderId context = device.add_holder("CUDA context");
  REQUIRE(device.take(context, 20_MiB));
  CachingAllocator allocator({}, device);
  REQUIRE(allocator.allocate(40_MiB).has_value());
  CHECK(device.free() == 0_B);
  {
    DeviceMemory other(64_MiB);
    CachingAllocator inner({}, other, "second process");
    REQUIRE(inner.allocate(3_MiB).has_value());
    CHECK(other.holders()[0].held == 20_MiB);
    CHECK(other.holders()[0].name == "second process");
  }
  const auto refused = allocator.allocate(1_B);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().tried == 2_MiB);
  CHECK(refused.error().process == 60_MiB);
}

TEST_CASE("An allocator that ends gives all back") {
  DeviceMemory device(64_MiB);
  {
    CachingAllocator allocator({}, device);
    REQUIRE(allocator.allocate(3_MiB).has_value());
    CHECK(device.free() == 44_MiB);
  }
  CHECK(device.free() == 64_MiB);
}

}  // namespace stowage
