// AllocatorStatistics: an allocator's figures, named as in torch.cuda.memory_stats() (both pools
// together). bfc_allocator.hpp says what they mean for TensorFlow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "estimator/base/bytes.hpp"

namespace stowage {

/// A quantity over time: its current value and its peak.
template <typename Amount>
struct Level {
  Amount current{};
  Amount peak{};  ///< largest value since the last reset_peak()

  void raise(Amount by) {
    current += by;
    peak = std::max(peak, current);
  }
  void lower(Amount by) { current -= by; }
  void reset_peak() { peak = current; }
  bool operator==(const Level&) const = default;
};

struct AllocatorStatistics {
  Level<Bytes> allocated;  ///< sizes of allocated blocks: memory_allocated()
  /// Sizes that the program requested, of allocated blocks and of freed ones that wait for other
  /// streams.
  Level<Bytes> requested;
  Level<Bytes> active;             ///< allocated blocks, and freed ones that wait for other streams
  Level<Bytes> reserved;           ///< memory taken from the driver: memory_reserved()
  Level<Bytes> inactive_split;     ///< free parts of split segments (not of expandable ones)
  Level<std::int64_t> segments;    ///< without expandable ones
  std::int64_t alloc_retries = 0;  ///< retries after the cache was released
  std::int64_t ooms = 0;
  std::int64_t early_refusals = 0;      ///< AllocatorSettings::refuse_early; not among the ooms
  std::int64_t device_allocations = 0;  ///< segments allocated and ranges mapped
  std::int64_t device_releases = 0;
  std::int64_t stream_synchronizations = 0;

  void reset_peaks() {
    for (Level<Bytes>* level : {&allocated, &requested, &active, &reserved, &inactive_split}) {
      level->reset_peak();
    }
    segments.reset_peak();
  }
  bool operator==(const AllocatorStatistics&) const = default;
};

}  // namespace stowage
