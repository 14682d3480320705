#include <doctest/doctest.h>

#include "tests/estimator/allocator/allocator_on_card.hpp"

namespace stowage {

namespace {

struct ExpandableOnCard : testing::AllocatorOnCard {
  explicit ExpandableOnCard(Bytes total, AllocatorSettings settings = {})
      : AllocatorOnCard(total, expandable(settings)) {}
  static AllocatorSettings expandable(AllocatorSettings settings) {
    settings.expandable_segments = true;
    return settings;
  }
};

}  // namespace

TEST_CASE("Expandable: only the missing pages are mapped") {
  ExpandableOnCard card(1_GiB);
  const BlockId a = card.take(30_MiB);  // two pages of 20 MiB
  CHECK(card.now().reserved.current == 40_MiB);
  CHECK(card.now().allocated.current == 30_MiB);
  card.take(15_MiB);  // 10 are there, one page more
  CHECK(card.now().reserved.current == 60_MiB);
  CHECK(card.now().segments.current == 0);
  CHECK(card.now().inactive_split.current == 0_B);
  CHECK(card.allocator.snapshot().size() == 1);
  card.allocator.free(a);
  card.take(25_MiB);  // in the hole of 30
  CHECK(card.now().reserved.current == 60_MiB);
}

TEST_CASE("Expandable: pages of the small pool are 2 MiB") {
  ExpandableOnCard card(1_GiB);
  card.take(1_MiB);
  card.take(1_MiB);
  CHECK(card.now().reserved.current == 2_MiB);
  card.take(1_B);
  CHECK(card.now().reserved.current == 4_MiB);
  card.take(2_MiB);
  CHECK(card.now().reserved.current == 24_MiB);
  CHECK(card.allocator.snapshot().size() == 2);
}

TEST_CASE("Expandable: 512 bytes are split off in the large pool too") {
  ExpandableOnCard card(1_GiB);
  card.take(20_MiB - 512_B);
  CHECK(card.now().allocated.current == 20_MiB - 512_B);
  card.take(20_MiB);  // the 512 bytes before it grow by one page
  CHECK(card.now().reserved.current == 40_MiB);
  CHECK(card.allocator.largest_cached_block() == 512_B);
}

TEST_CASE("Expandable: whole free pages go back, parts stay") {
  ExpandableOnCard card(1_GiB);
  const BlockId a = card.take(10_MiB);
  const BlockId b = card.take(65_MiB);  // 10 to 75 of 80
  const BlockId c = card.take(5_MiB);   // 75 to 80
  CHECK(card.now().reserved.current == 80_MiB);
  card.allocator.free(b);
  card.allocator.empty_cache();  // of 10..75 the pages 20..40 and 40..60
  CHECK(card.now().reserved.current == 40_MiB);
  CHECK(card.device.free() == 1_GiB - 40_MiB);
  CHECK(card.allocator.largest_cached_block() == 15_MiB);
  // The hole is mapped again, from the free 10 MiB before it on.
  card.take(40_MiB);
  CHECK(card.now().reserved.current == 80_MiB);
  card.allocator.free(a);
  card.allocator.free(c);
  CHECK(card.allocator.snapshot()[0].blocks.size() == 3);
}

TEST_CASE("Expandable: with nothing allocated all is unmapped, and the range goes") {
  ExpandableOnCard card(1_GiB);
  card.allocator.free(card.take(50_MiB));
  CHECK(card.now().reserved.current == 60_MiB);
  card.allocator.empty_cache();
  CHECK(card.now().reserved.current == 0_B);
  CHECK(card.allocator.snapshot().empty());
  CHECK(card.device.free() == 1_GiB);
  card.take(50_MiB);
  CHECK(card.now().reserved.current == 60_MiB);
}

TEST_CASE("Expandable: fragments of other sizes are released and mapped anew") {
  // The same as in a segment of its own each, which would end in a refusal.
  ExpandableOnCard card(100_MiB);
  const BlockId a = card.take(60_MiB);
  card.take(20_MiB);
  card.allocator.free(a);
  card.take(20_MiB);  // 20 MiB of the hole
  CHECK(card.now().reserved.current == 80_MiB);
  card.take(60_MiB);  // 40 are free and too few: released, 60 mapped at the end
  CHECK(card.now().reserved.current == 100_MiB);
  CHECK(card.now().allocated.current == 100_MiB);
  CHECK(card.now().alloc_retries == 1);
}

TEST_CASE("Expandable: a mapping that fails is undone") {
  ExpandableOnCard card(100_MiB);
  card.take(60_MiB);
  const auto refused = card.allocator.allocate(50_MiB);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().tried == 50_MiB);
  CHECK(card.now().reserved.current == 60_MiB);
  CHECK(card.device.free() == 40_MiB);
  CHECK(card.now().reserved.peak == 60_MiB);
  card.take(40_MiB);
  CHECK(card.device.free() == 0_B);
}

TEST_CASE("Expandable: the limit counts the segment, not the missing pages") {
  AllocatorSettings settings;
  settings.memory_fraction = 0.5;
  ExpandableOnCard card(200_MiB, settings);
  card.take(75_MiB);                                     // 80 mapped
  const auto refused = card.allocator.allocate(24_MiB);  // 5 are free, one page would do
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().allowed == 100_MiB);
  card.take(20_MiB);
  CHECK(card.now().reserved.current == 100_MiB);
}

TEST_CASE("Expandable: a range for each stream and pool") {
  ExpandableOnCard card(1_GiB);
  card.take(2_MiB);
  card.take(2_MiB, StreamId{1});
  card.take(1_B);
  const auto segments = card.allocator.snapshot();
  REQUIRE(segments.size() == 3);
  CHECK(segments[0].reserved == 20_MiB);
  CHECK(segments[1].reserved == 20_MiB);
  CHECK(segments[2].reserved == 2_MiB);
  // Each is a card and an eighth long: 1152 MiB, in pages of 20.
  CHECK(segments[1].address == (1160_MiB).count());
  CHECK(segments[2].address == (2320_MiB).count());
}

TEST_CASE("Expandable: best fit counts what a block could become") {
  // Free: 30 MiB between two blocks, and 25 MiB at the end, which could grow. For 20 MiB the 25
  // come first by size and would be cut; as they could become far more, the 30 are taken.
  ExpandableOnCard card(1_GiB);
  const BlockId a = card.take(30_MiB);
  card.take(5_MiB);
  const BlockId c = card.take(25_MiB);
  CHECK(card.now().reserved.current == 60_MiB);
  card.allocator.free(c);
  card.allocator.free(a);
  const BlockId d = card.take(20_MiB);
  const auto blocks = card.allocator.snapshot()[0].blocks;
  REQUIRE(blocks.size() == 4);
  CHECK(blocks[0].state == BlockState::allocated);
  CHECK(blocks[1].size == 10_MiB);
  CHECK(blocks[3].size == 25_MiB);
  card.allocator.free(d);
}

}  // namespace stowage
