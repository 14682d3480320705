// AllocatorReplay: a process that trains or infers, run through PyTorch's caching allocator.
//
// Parameters and buffers are loaded, the first step makes the optimizer's state, and steps follow
// until one of them asks the driver for nothing more. cuBLAS's workspaces are allocated at their
// first use and stay. A convolution whose first engine finds no room takes the next one, as PyTorch
// does after the allocator has given back what it had cached. With cudnn.benchmark each distinct
// convolution first tries all its engines in a buffer of the largest workspace that the device
// could hold.
#pragma once

#include <optional>
#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/allocator/out_of_memory.hpp"
#include "estimator/memory/step_memory.hpp"

namespace stowage {

struct ReplaySettings {
  AllocatorSettings allocator;
  Bytes limit;  ///< what the device has for the allocator
  std::vector<RuntimeBuffer> buffers;
};

/// Bytes of one moment or the most during some time.
struct AllocatorLevels {
  Bytes allocated;  ///< in blocks handed out: max_memory_allocated()
  Bytes reserved;   ///< max_memory_reserved()
};

struct ProcessReplay {
  AllocatorLevels loaded;      ///< with parameters and buffers
  AllocatorLevels first_step;  ///< the most during it
  AllocatorLevels steady;      ///< the most during the last of the steps
  Bytes reserved;              ///< the most in all
  Bytes cached_at_peak;        ///< reserved and not allocated when that was reached
  std::int64_t releases = 0;   ///< times that the cache was given back to the driver
  int steps = 0;               ///< that were run
  std::vector<int> engine;     ///< by NodeId: taken in the last step; 0 where there is no choice

  struct Failure {
    NodeId node;   ///< none: while parameters and buffers are loaded
    int step = 0;  ///< from 1
    OutOfMemory out_of_memory;
  };
  std::optional<Failure> failure;  ///< none: the process ran

  [[nodiscard]] bool completed() const { return !failure; }
};

inline constexpr int most_replayed_steps = 8;

/// O(steps * touches * log blocks).
[[nodiscard]] ProcessReplay replay_process(const SizedStep& step,
                                           const std::vector<Touches>& touches,
                                           const ReplaySettings& settings);

}  // namespace stowage
