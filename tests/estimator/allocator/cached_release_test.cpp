// What happens when the driver or a limit says no.
#include <doctest/doctest.h>

#include "tests/estimator/allocator/allocator_on_card.hpp"

namespace stowage {

namespace {

using Card = testing::AllocatorOnCard;

AllocatorSettings split_up_to(Bytes size) {
  AllocatorSettings settings;
  settings.max_split_size = size;
  return settings;
}

AllocatorSettings collecting(double fraction, double threshold) {
  AllocatorSettings settings;
  settings.memory_fraction = fraction;
  settings.garbage_collection_threshold = threshold;
  return settings;
}

}  // namespace

TEST_CASE("Out of memory names the segment, not the request") {
  Card card(64_MiB);
  card.take(50_MiB);
  const OutOfMemory failure = card.refused(1536_KiB);
  CHECK(failure == OutOfMemory{.requested = 1536_KiB,
                               .tried = 20_MiB,
                               .total = 64_MiB,
                               .free = 14_MiB,
                               .process = 50_MiB,
                               .allowed = std::nullopt,
                               .allocated = 50_MiB,
                               .reserved = 50_MiB,
                               .refused_early = false});
  CHECK(card.now().ooms == 1);
  CHECK(card.now().alloc_retries == 1);
  CHECK(card.refused(14_MiB + 1_B).tried == 16_MiB);
  card.take(14_MiB);
}

TEST_CASE("PyTorch's words") {
  Card card(2002_MiB, {}, 329_MiB);
  card.take(1400_MiB);
  card.take(101_MiB);
  CHECK(pytorch_message(card.refused(200_MiB)) ==
        "CUDA out of memory. Tried to allocate 200.00 MiB. GPU 0 has a total capacity of 1.96 GiB "
        "of which 171.00 MiB is free. Including non-PyTorch memory, this process has 1.47 GiB "
        "memory in use. Of the allocated memory 1.47 GiB is allocated by PyTorch, and 0 bytes is "
        "reserved by PyTorch but unallocated.");
  AllocatorSettings half;
  half.memory_fraction = 0.5;
  Card limited(1_GiB, half);
  limited.take(1536_KiB);
  CHECK(pytorch_message(limited.refused(500_MiB)) ==
        "CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 1024.00 "
        "MiB of which 1004.00 MiB is free. Including non-PyTorch memory, this process has 20.00 "
        "MiB memory in use. 512.00 MiB allowed; Of the allocated memory 1.50 MiB is allocated by "
        "PyTorch, and 18.50 MiB is reserved by PyTorch but unallocated.");
  CHECK(pytorch_size(1024_B) == "1024 bytes");
  CHECK(pytorch_size(1025_B) == "1.00 KiB");
  CHECK(pytorch_size(1_MiB) == "1024.00 KiB");
  CHECK(pytorch_size(1_GiB + 1_B) == "1.00 GiB");
}

TEST_CASE("Refused, the cache is released and the allocation tried again") {
  Card card(64_MiB);
  const BlockId large = card.take(40_MiB);
  const BlockId small = card.take(1_KiB);
  card.allocator.free(large);
  card.allocator.free(small);
  CHECK(card.now().reserved.current == 42_MiB);
  card.take(60_MiB);
  CHECK(card.now().reserved.current == 60_MiB);
  CHECK(card.now().alloc_retries == 1);
  CHECK(card.now().ooms == 0);
  CHECK(card.now().device_releases == 2);
}

TEST_CASE("Refused, waiting blocks are waited for") {
  Card card(64_MiB);
  const BlockId block = card.take(40_MiB);
  card.allocator.record_stream(block, StreamId{1});
  card.allocator.free(block);
  card.take(50_MiB);
  CHECK(card.now().active.current == 50_MiB);
  CHECK(card.now().stream_synchronizations == 1);
}

TEST_CASE("Split segments are not released, and so fragmentation ends in a refusal") {
  Card card(64_MiB);
  std::vector<BlockId> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(card.take(10_MiB - 512_B));
  CHECK(card.now().reserved.current == 60_MiB);
  for (const int i : {0, 2, 4}) card.allocator.free(blocks[static_cast<std::size_t>(i)]);
  const OutOfMemory failure = card.refused(20_MiB);
  CHECK(failure.reserved == 60_MiB);
  CHECK(failure.allocated == 3 * (10_MiB + 512_B));
}

TEST_CASE("A fraction refuses before the driver does") {
  AllocatorSettings settings;
  settings.memory_fraction = 0.5;
  Card card(100_MiB, settings);
  card.take(32_MiB);
  CHECK(card.refused(2_MiB + 512_B).tried == 20_MiB);
  CHECK(card.refused(20_MiB).allowed == 50_MiB);
  card.take(18_MiB);
  CHECK(card.now().reserved.current == 50_MiB);
  CHECK(card.device.free() == 50_MiB);
  CHECK(card.refused(1_B).tried == 2_MiB);
}

TEST_CASE("A fraction of 1 is no limit") {
  AllocatorSettings settings;
  settings.memory_fraction = 1.0;
  Card card(100_MiB, settings);
  card.take(100_MiB);
  CHECK_FALSE(card.refused(1_B).allowed.has_value());
}

TEST_CASE("Refused early, the cache stays") {
  AllocatorSettings settings;
  settings.refuse_early = true;
  Card card(100_MiB, settings);
  card.allocator.free(card.take(60_MiB));
  const OutOfMemory failure = card.refused(80_MiB);
  CHECK(failure.reserved == 60_MiB);
  CHECK(pytorch_message(failure) ==
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        "per_process_memory_fraction limit. Requested size: 80.00 MiB");
  CHECK(card.now().early_refusals == 1);
  CHECK(card.now().ooms == 0);
  CHECK(card.now().alloc_retries == 0);

  // What the driver refuses below the total is tried again as always.
  Card shared(100_MiB, settings, 30_MiB);
  shared.allocator.free(shared.take(40_MiB));
  shared.take(60_MiB);
  CHECK(shared.now().reserved.current == 60_MiB);
  CHECK(shared.now().alloc_retries == 1);
}

TEST_CASE("With max_split_size large blocks are whole, and not for small requests") {
  Card card(1_GiB, split_up_to(100_MiB));
  const BlockId large = card.take(120_MiB);
  CHECK(card.now().allocated.current == 120_MiB);
  card.allocator.free(large);
  card.take(50_MiB);  // below the limit: not from the 120 MiB
  CHECK(card.now().reserved.current == 170_MiB);
  const BlockId near = card.take(101_MiB);  // 120 < 101 + 20: taken whole
  CHECK(card.now().reserved.current == 170_MiB);
  CHECK(card.now().allocated.current == 170_MiB);
  card.allocator.free(near);
  card.take(100_MiB);  // 120 >= 100 + 20: rejected
  CHECK(card.now().reserved.current == 270_MiB);
}

TEST_CASE("Only the best fit is looked at") {
  // 100 MiB is met first and rejected for 30 MiB; nothing else is searched, though 40 would fit
  // were it looked at: it is not, as it is smaller and comes first, so free it and see it taken.
  Card card(1_GiB, split_up_to(64_MiB));
  const BlockId large = card.take(100_MiB);
  card.allocator.free(large);
  const BlockId first = card.take(30_MiB);
  CHECK(card.now().reserved.current == 130_MiB);
  card.allocator.free(first);
  card.take(28_MiB);
  CHECK(card.now().reserved.current == 130_MiB);
  CHECK(card.now().inactive_split.current == 2_MiB);
}

TEST_CASE("The slack of unsplit blocks can be set") {
  AllocatorSettings settings = split_up_to(100_MiB);
  settings.max_non_split_rounding = 60_MiB;
  Card card(1_GiB, settings);
  card.allocator.free(card.take(158_MiB));
  card.take(100_MiB);
  CHECK(card.now().reserved.current == 158_MiB);
  CHECK(card.now().allocated.current == 158_MiB);
}

TEST_CASE("Release available: one block that is large enough alone, before all else") {
  Card card(300_MiB, split_up_to(20_MiB));
  const BlockId a = card.take(30_MiB);
  const BlockId b = card.take(90_MiB);
  const BlockId c = card.take(100_MiB);
  const BlockId d = card.take(70_MiB);
  for (const BlockId block : {a, b, c, d}) card.allocator.free(block);
  // 75 MiB: the smallest of at least 75 is 90, and is taken for it (90 < 75 + 20).
  card.take(75_MiB);
  CHECK(card.now().reserved.current == 290_MiB);
  // 60 MiB: 70 fits in the same way. 35 MiB: 100 is rejected, so is the driver's 10 MiB; the 100
  // are released and 36 taken.
  card.take(60_MiB);
  card.take(35_MiB);
  CHECK(card.now().reserved.current == 290_MiB - 100_MiB + 36_MiB);
  CHECK(card.now().alloc_retries == 0);
}

TEST_CASE("Release available: the largest downward until they sum up") {
  Card card(200_MiB, split_up_to(20_MiB));
  std::vector<BlockId> blocks;
  for (const Bytes size : {30_MiB, 40_MiB, 50_MiB, 60_MiB}) blocks.push_back(card.take(size));
  for (const BlockId block : blocks) card.allocator.free(block);
  CHECK(card.now().reserved.current == 180_MiB);
  card.take(100_MiB);  // 60 + 50
  CHECK(card.now().reserved.current == 170_MiB);
  CHECK(card.now().alloc_retries == 0);
  CHECK(card.now().device_releases == 2);
  // 120 cannot be made of 30 + 40: both go, and then everything that is cached.
  CHECK(card.refused(120_MiB).reserved == 100_MiB);
  CHECK(card.now().alloc_retries == 1);
}

TEST_CASE("Garbage: blocks of at least the mean age go, before the driver is asked") {
  Card card(1000_MiB, collecting(0.4, 0.5));  // limit 400 MiB, garbage above 200 MiB
  const BlockId a = card.take(80_MiB);
  const BlockId b = card.take(82_MiB);
  const BlockId c = card.take(84_MiB);
  card.allocator.free(a);
  const BlockId d = card.take(90_MiB);  // 246 > 200: a, of age 1 and alone, is released
  CHECK(card.now().reserved.current == 256_MiB);
  card.allocator.free(b);
  const BlockId e = card.take(80_MiB);  // from b
  CHECK(card.now().reserved.current == 256_MiB);
  card.allocator.free(c);
  card.allocator.free(e);
  card.allocator.free(d);
  // 56 MiB too much; all three are of age 1, which is the mean, so that all of them go.
  card.take(100_MiB);
  CHECK(card.now().reserved.current == 100_MiB);
  CHECK(card.now().alloc_retries == 0);
}

TEST_CASE("Garbage: the young stay if the old are enough") {
  Card card(1000_MiB, collecting(0.5, 0.5));  // garbage above 250 MiB
  const BlockId old = card.take(100_MiB);
  const BlockId young = card.take(102_MiB);
  const BlockId other = card.take(60_MiB);
  card.allocator.free(card.take(1_KiB));
  card.allocator.free(old);
  card.allocator.free(other);
  card.take(60_MiB);                      // a search that `old` lies through
  card.allocator.free(card.take(1_KiB));  // and one of the small pool, which is not counted here
  CHECK(card.now().reserved.current == 264_MiB);
  card.allocator.free(young);
  card.take(110_MiB);  // ages 2 and 1, mean 1.5; 14 MiB are too much
  CHECK(card.now().reserved.current == 164_MiB + 110_MiB);
  CHECK(card.allocator.largest_cached_block() == 102_MiB);
}

TEST_CASE("Garbage: pass by pass until it is enough") {
  Card card(1000_MiB, collecting(0.5, 0.2));  // garbage above 100 MiB
  const BlockId a = card.take(40_MiB);
  const BlockId b = card.take(50_MiB);
  const BlockId c = card.take(8_MiB);
  card.allocator.free(a);
  card.take(12_MiB);  // from c's segment
  card.allocator.free(b);
  CHECK(card.now().reserved.current == 110_MiB);
  // a of age 2, b of age 1: the first pass takes a, 40 MiB of the 10 that are too much.
  const BlockId d = card.take(60_MiB);
  CHECK(card.now().reserved.current == 130_MiB);
  // b of age 2 alone: 50 of the 30 that are too much; d's search is its last.
  card.take(70_MiB);
  CHECK(card.now().reserved.current == 150_MiB);
  card.allocator.free(d);
  card.allocator.free(c);
  card.take(100_MiB);
  CHECK(card.now().reserved.current == 20_MiB + 70_MiB + 100_MiB);
}

TEST_CASE("Garbage: split segments and the small pool are no candidates") {
  Card card(1000_MiB, collecting(0.5, 0.2));
  card.take(30_MiB);
  const BlockId large = card.take(90_MiB);
  const BlockId small = card.take(1_KiB);
  card.allocator.free(large);
  card.allocator.free(small);
  card.take(20_MiB);  // splits the 90
  card.take(80_MiB);
  CHECK(card.now().reserved.current == 30_MiB + 90_MiB + 2_MiB + 80_MiB);
}

TEST_CASE("Garbage is not collected without a fraction") {
  AllocatorSettings settings;
  settings.garbage_collection_threshold = 0.1;
  Card card(1000_MiB, settings);
  card.allocator.free(card.take(500_MiB));
  card.take(510_MiB - 20_MiB, StreamId{1});
  CHECK(card.now().reserved.current == 990_MiB);
}

}  // namespace stowage
