#include "estimator/allocator/replay.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace stowage {

namespace {

using Kind = AllocationEvent::Kind;

AllocationEvent take(std::int32_t buffer, Bytes bytes) {
  return {Kind::allocate, buffer, bytes, default_stream};
}
AllocationEvent drop(std::int32_t buffer) { return {Kind::free, buffer, {}, default_stream}; }
AllocationEvent mark(std::int32_t number) { return {Kind::mark, number, {}, default_stream}; }

}  // namespace

TEST_CASE("A replay reports marks, peaks and the fragmentation there") {
  DeviceMemory device(1_GiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const std::vector<AllocationEvent> events = {
      take(0, 12_MiB), take(1, 1536_KiB), mark(7), drop(0),
      take(2, 30_MiB), take(3, 2_MiB),    drop(1), drop(3)};
  const Replay result = replay(events, allocator, live);
  REQUIRE_FALSE(result.failure.has_value());
  REQUIRE(result.marks.size() == 1);
  CHECK(result.marks[0].mark == 7);
  CHECK(result.marks[0].event == 2);
  CHECK(result.marks[0].statistics.allocated.current == 13824_KiB);
  CHECK(result.marks[0].statistics.reserved.current == 32_MiB);
  // 62 MiB are reserved from event 4 on; the most is allocated then after event 5.
  CHECK(result.peak_reserved.event == 5);
  CHECK(result.peak_reserved.levels == MemoryLevels{34304_KiB, 34304_KiB, 34304_KiB, 62_MiB});
  CHECK(result.peak_reserved.levels.fragmentation() == 62_MiB - 34304_KiB);
  CHECK(result.peak_allocated.event == 5);
  CHECK(result.end.allocated == 30_MiB);
  CHECK(live.count() == 1);
  CHECK(live.is_live(2));
}

TEST_CASE("A replay ends at a refusal, with the event and the state") {
  DeviceMemory device(64_MiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const std::vector<AllocationEvent> events = {take(0, 40_MiB), mark(0), take(1, 2_MiB),
                                               take(2, 19_MiB), mark(1)};
  const Replay result = replay(events, allocator, live);
  REQUIRE(result.failure.has_value());
  CHECK(result.failure->event == 3);
  CHECK(result.failure->out_of_memory.tried == 20_MiB);
  CHECK(result.failure->out_of_memory.requested == 19_MiB);
  CHECK(result.failure->out_of_memory.free == 4_MiB);
  CHECK(result.failure->statistics.reserved.current == 60_MiB);
  CHECK(result.failure->statistics.ooms == 1);
  CHECK(result.marks.size() == 1);
  CHECK(result.end.allocated == 42_MiB);
}

TEST_CASE("Streams, resets and emptying in a trace") {
  DeviceMemory device(1_GiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const StreamId side{1};
  const std::vector<AllocationEvent> events = {take(0, 12_MiB),
                                               {Kind::record_stream, 0, {}, side},
                                               drop(0),
                                               mark(0),
                                               {Kind::complete, 0, {}, side},
                                               {Kind::empty_cache, 0, {}, default_stream},
                                               {Kind::reset_peaks, 0, {}, default_stream},
                                               mark(1)};
  const Replay result = replay(events, allocator, live);
  REQUIRE(result.marks.size() == 2);
  CHECK(result.marks[0].statistics.active.current == 12_MiB);
  CHECK(result.marks[1].statistics.active.current == 0_B);
  CHECK(result.marks[1].statistics.reserved.peak == 0_B);
}

TEST_CASE("A trace that does not hold together is a mistake of who made it") {
  DeviceMemory device(1_GiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const std::vector<AllocationEvent> twice = {take(0, 1_B), take(0, 1_B)};
  CHECK_THROWS_WITH_AS((void)replay(twice, allocator, live), "buffer 0 is allocated twice",
                       std::logic_error);
  const std::vector<AllocationEvent> dead = {drop(3)};
  CHECK_THROWS_WITH_AS((void)replay(dead, allocator, live), "buffer 3 is not live",
                       std::logic_error);
  const std::vector<AllocationEvent> leak = {take(4, 1_B)};
  CHECK_THROWS_WITH_AS((void)replay_until_steady(leak, allocator, live),
                       "the step does not leave live what it found live", std::logic_error);
}

TEST_CASE("Steps are repeated until two are alike") {
  // In the first step the gradient's 30 MiB come anew; in the later ones the cache has them.
  DeviceMemory device(1_GiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const std::vector<AllocationEvent> load = {take(0, 64_MiB)};
  REQUIRE_FALSE(replay(load, allocator, live).failure.has_value());
  const std::vector<AllocationEvent> step = {take(1, 30_MiB), take(2, 12_MiB), drop(1),
                                             take(3, 20_MiB), drop(2),         take(4, 13_MiB),
                                             drop(3),         drop(4)};
  const SteadyReplay result = replay_until_steady(step, allocator, live);
  CHECK(result.steady);
  REQUIRE(result.repetitions.size() == 3);
  // 30 + 12; 20 from the 30, 10 left; 12 freed, 13 anew: 14.
  CHECK(result.repetitions[0].peak_reserved.levels.reserved == (64_MiB) + 56_MiB);
  CHECK(result.repetitions[0].peak_reserved.event == 5);
  CHECK(result.last().peak_reserved.levels.reserved == 120_MiB);
  CHECK(result.last().peak_reserved == result.repetitions[1].peak_reserved);
  CHECK(result.last().end.allocated == 64_MiB);
  CHECK(live.count() == 1);
}

TEST_CASE("A step may free what the step before it left, and allocate it again") {
  DeviceMemory device(1_GiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const std::vector<AllocationEvent> first = {take(0, 12_MiB)};
  const std::vector<AllocationEvent> step = {take(1, 12_MiB), drop(0), take(0, 12_MiB), drop(1)};
  REQUIRE_FALSE(replay(first, allocator, live).failure.has_value());
  const SteadyReplay result = replay_until_steady(step, allocator, live);
  CHECK(result.steady);
  CHECK(result.repetitions.size() == 2);
  CHECK(result.last().end.reserved == 24_MiB);
}

TEST_CASE("No more repetitions than allowed, none after a refusal") {
  DeviceMemory device(64_MiB);
  CachingAllocator allocator({}, device);
  LiveBuffers live;
  const std::vector<AllocationEvent> step = {take(0, 30_MiB), drop(0)};
  const SteadyReplay once = replay_until_steady(step, allocator, live, 1);
  CHECK_FALSE(once.steady);
  CHECK(once.repetitions.size() == 1);
  const std::vector<AllocationEvent> too_large = {take(0, 30_MiB), take(1, 40_MiB), drop(1),
                                                  drop(0)};
  const SteadyReplay refused = replay_until_steady(too_large, allocator, live);
  CHECK_FALSE(refused.steady);
  REQUIRE(refused.repetitions.size() == 1);
  CHECK(refused.last().failure->event == 1);
}

}  // namespace stowage
