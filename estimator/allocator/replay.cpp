#include "estimator/allocator/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace stowage {

namespace {

MemoryLevels levels_of(const AllocatorStatistics& statistics) {
  return {statistics.allocated.current, statistics.requested.current, statistics.active.current,
          statistics.reserved.current};
}

tl::expected<BlockId, OutOfMemory> allocate(CachingAllocator& allocator,
                                            const AllocationEvent& event) {
  return allocator.allocate(event.bytes, event.stream);
}
tl::expected<BlockId, OutOfMemory> allocate(BfcAllocator& allocator, const AllocationEvent& event) {
  return allocator.allocate(event.bytes);
}

/// What only one of the allocators knows.
void apply_other(const AllocationEvent& event, CachingAllocator& allocator,
                 const LiveBuffers& live) {
  using Kind = AllocationEvent::Kind;
  if (event.kind == Kind::record_stream) {
    allocator.record_stream(live.at(event.buffer), event.stream);
  }
  if (event.kind == Kind::complete) allocator.complete_events(event.stream);
  if (event.kind == Kind::empty_cache) allocator.empty_cache();
}
void apply_other(const AllocationEvent&, BfcAllocator&, const LiveBuffers&) {}

/// Does one event; the failure where it is an allocation that is refused.
template <typename Allocator>
std::optional<OutOfMemory> apply(const AllocationEvent& event, Allocator& allocator,
                                 LiveBuffers& live) {
  using Kind = AllocationEvent::Kind;
  switch (event.kind) {
    case Kind::allocate: {
      const auto block = allocate(allocator, event);
      if (!block) return block.error();
      live.add(event.buffer, *block);
      break;
    }
    case Kind::free:
      allocator.free(live.remove(event.buffer));
      break;
    case Kind::reset_peaks:
      allocator.reset_peaks();
      break;
    case Kind::record_stream:
    case Kind::complete:
    case Kind::empty_cache:
      apply_other(event, allocator, live);
      break;
    case Kind::mark:
      break;
  }
  return std::nullopt;
}

void follow_peaks(Replay& result, std::size_t event, const MemoryLevels& now) {
  MemoryLevels& reserved = result.peak_reserved.levels;
  if (std::pair(now.reserved, now.allocated) > std::pair(reserved.reserved, reserved.allocated)) {
    result.peak_reserved = {event, now};
  }
  if (now.allocated > result.peak_allocated.levels.allocated) result.peak_allocated = {event, now};
}

bool same_course(const Replay& a, const Replay& b) {
  return a.peak_reserved == b.peak_reserved && a.peak_allocated == b.peak_allocated &&
         a.end == b.end;
}

template <typename Allocator>
Replay replay_on(Allocator& allocator, std::span<const AllocationEvent> events, LiveBuffers& live) {
  Replay result;
  const AllocatorStatistics& statistics = allocator.statistics();
  result.peak_reserved.levels = result.peak_allocated.levels = levels_of(statistics);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (auto failure = apply(events[i], allocator, live)) {
      result.failure = ReplayFailure{i, std::move(*failure), statistics};
      break;
    }
    if (events[i].kind == AllocationEvent::Kind::mark) {
      result.marks.push_back({events[i].buffer, i, statistics});
    }
    follow_peaks(result, i, levels_of(statistics));
  }
  result.end = levels_of(statistics);
  return result;
}

template <typename Allocator>
SteadyReplay repeat_on(Allocator& allocator, std::span<const AllocationEvent> step,
                       LiveBuffers& live, int limit) {
  assert(limit >= 1);
  SteadyReplay result;
  const LiveBuffers before = live;
  while (!result.steady && result.repetitions.size() < static_cast<std::size_t>(limit)) {
    allocator.reset_peaks();
    result.repetitions.push_back(replay_on(allocator, step, live));
    if (result.last().failure) break;
    if (!(live == before)) {
      throw std::logic_error("the step does not leave live what it found live");
    }
    const std::size_t count = result.repetitions.size();
    result.steady =
        count > 1 && same_course(result.repetitions[count - 2], result.repetitions[count - 1]);
  }
  return result;
}

}  // namespace

bool LiveBuffers::is_live(std::int32_t buffer) const {
  const auto index = static_cast<std::size_t>(buffer);
  return index < slots_.size() && slots_[index].live;
}

bool LiveBuffers::operator==(const LiveBuffers& other) const {
  if (count_ != other.count_) return false;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].live && !other.is_live(static_cast<std::int32_t>(i))) return false;
  }
  return true;
}

void LiveBuffers::add(std::int32_t buffer, BlockId block) {
  if (buffer < 0 || is_live(buffer)) {
    throw std::logic_error(fmt::format("buffer {} is allocated twice", buffer));
  }
  const auto index = static_cast<std::size_t>(buffer);
  if (index >= slots_.size()) slots_.resize(std::max(index + 1, 2 * slots_.size()));
  slots_[index] = {true, block};
  ++count_;
}

BlockId LiveBuffers::at(std::int32_t buffer) const {
  if (!is_live(buffer)) throw std::logic_error(fmt::format("buffer {} is not live", buffer));
  return slots_[static_cast<std::size_t>(buffer)].block;
}

BlockId LiveBuffers::remove(std::int32_t buffer) {
  const BlockId block = at(buffer);
  slots_[static_cast<std::size_t>(buffer)] = {};
  --count_;
  return block;
}

Replay replay(std::span<const AllocationEvent> events, CachingAllocator& allocator,
              LiveBuffers& live) {
  return replay_on(allocator, events, live);
}

Replay replay(std::span<const AllocationEvent> events, BfcAllocator& allocator, LiveBuffers& live) {
  return replay_on(allocator, events, live);
}

SteadyReplay replay_until_steady(std::span<const AllocationEvent> step, CachingAllocator& allocator,
                                 LiveBuffers& live, int limit) {
  return repeat_on(allocator, step, live, limit);
}

SteadyReplay replay_until_steady(std::span<const AllocationEvent> step, BfcAllocator& allocator,
                                 LiveBuffers& live, int limit) {
  return repeat_on(allocator, step, live, limit);
}

}  // namespace stowage
