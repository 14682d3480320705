// Replaying a list of allocations against a simulated allocator, PyTorch's or TensorFlow's.
//
// A trace names its buffers by numbers of its own; what is live is kept outside of the replay, so
// that a first step and the steps after it are replayed one after the other: what the first leaves
// allocated (optimizer state), the next ones find.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "estimator/allocator/bfc_allocator.hpp"
#include "estimator/allocator/caching_allocator.hpp"

namespace stowage {

struct AllocationEvent {
  enum class Kind {
    allocate,       ///< buffer, bytes, stream
    free,           ///< buffer
    record_stream,  ///< buffer, stream: used there too
    complete,       ///< stream: its work so far is done
    mark,           ///< buffer: a number of the caller's, for his finding it again
    reset_peaks,
    empty_cache,
  };
  Kind kind = Kind::mark;
  std::int32_t buffer = 0;  ///< 0 and up, small: they index a table. Free again once freed
  Bytes bytes;
  StreamId stream = default_stream;
};

/// The four figures of one moment.
struct MemoryLevels {
  Bytes allocated, requested, active, reserved;
  [[nodiscard]] Bytes fragmentation() const { return reserved - allocated; }
  bool operator==(const MemoryLevels&) const = default;
};

struct PeakMoment {
  std::size_t event = 0;  ///< after which it was so
  MemoryLevels levels;
  bool operator==(const PeakMoment&) const = default;
};

struct ReplayMark {
  std::int32_t mark = 0;
  std::size_t event = 0;
  AllocatorStatistics statistics;  ///< peaks since the last reset
};

/// Where a replay ended early. The allocator is left as it was then.
struct ReplayFailure {
  std::size_t event = 0;
  OutOfMemory out_of_memory;
  AllocatorStatistics statistics;
};

struct Replay {
  std::vector<ReplayMark> marks;
  /// The most that was reserved; of the moments at which it was, the first of those with the most
  /// allocated. Its fragmentation is what the cache holds beyond what the program needs then.
  PeakMoment peak_reserved;
  PeakMoment peak_allocated;  ///< the first of the moments with the most allocated
  MemoryLevels end;
  std::optional<ReplayFailure> failure;
};

/// By buffer number: its block; none: not allocated.
class LiveBuffers {
 public:
  [[nodiscard]] bool is_live(std::int32_t buffer) const;
  [[nodiscard]] std::size_t count() const { return count_; }
  bool operator==(const LiveBuffers& other) const;  ///< the same buffers are live

  void add(std::int32_t buffer, BlockId block);         ///< precondition: not live
  [[nodiscard]] BlockId at(std::int32_t buffer) const;  ///< precondition: live
  BlockId remove(std::int32_t buffer);                  ///< precondition: live

 private:
  struct Slot {
    bool live = false;
    BlockId block;
  };
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// Replays until the end or the first failure. O(events log blocks). A trace that frees what is not
/// live or allocates what is live throws std::logic_error.
[[nodiscard]] Replay replay(std::span<const AllocationEvent> events, CachingAllocator& allocator,
                            LiveBuffers& live);
/// TensorFlow has one compute stream a device: what an event says of streams, and empty_cache,
/// which it does not have, are passed over.
[[nodiscard]] Replay replay(std::span<const AllocationEvent> events, BfcAllocator& allocator,
                            LiveBuffers& live);

struct SteadyReplay {
  /// Of each repetition, with its own peaks. The last is the steady one if `steady`.
  std::vector<Replay> repetitions;
  bool steady = false;
  [[nodiscard]] const Replay& last() const { return repetitions.back(); }
};

/// Repeats a step until it is steady, that is until a repetition ends with the same levels, and had
/// the same peaks at the same events, as the one before it; at most `limit` times (at least 1), and
/// no further than a failure. Resets the allocator's peaks before each. A step that does not leave
/// live what it found live cannot be repeated and throws std::logic_error.
[[nodiscard]] SteadyReplay replay_until_steady(std::span<const AllocationEvent> step,
                                               CachingAllocator& allocator, LiveBuffers& live,
                                               int limit = 20);
[[nodiscard]] SteadyReplay replay_until_steady(std::span<const AllocationEvent> step,
                                               BfcAllocator& allocator, LiveBuffers& live,
                                               int limit = 20);

}  // namespace stowage
