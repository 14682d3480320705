// AllocatorStatistics: an allocator's figures, named as torch.cuda.memory_stats() names them (both
// pools together); bfc_allocator.hpp says what they are for TensorFlow.
#pragma once

#include <algorithm>
#include <cstdint>

#include "estimator/base/bytes.hpp"

namespace stowage {

template <typename Amount>
struct Level {
  Amount current{};
  Amount peak{};  ///< the most since the peaks were last reset

  void raise(Amount by) {
    current += by;
    peak = std::max(peak, current);
  }
  void lower(Amount by) { current -= by; }
  void reset_peak() { peak = current; }
  bool operator==(const Level&) const = default;
};

struct AllocatorStatistics {
  Level<Bytes> allocated;          ///< blocks handed out, in whole: memory_allocated()
  Level<Bytes> requested;          ///< the same as they were asked for, and waiting blocks
  Level<Bytes> active;             ///< allocated, and freed blocks that wait for other streams
  Level<Bytes> reserved;           ///< held from the driver: memory_reserved()
  Level<Bytes> inactive_split;     ///< free parts of split segments (not of expandable ones)
  Level<std::int64_t> segments;    ///< not the expandable ones
  std::int64_t alloc_retries = 0;  ///< tries after all that was cached had been released
  std::int64_t ooms = 0;
  std::int64_t early_refusals = 0;      ///< AllocatorSettings::refuse_early; not among the ooms
  std::int64_t device_allocations = 0;  ///< segments taken and ranges mapped
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
