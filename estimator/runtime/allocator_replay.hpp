// AllocatorReplay: a process that trains or infers, run through PyTorch's caching allocator.
//
// The first step makes the optimizer's state. cuBLAS's workspaces are allocated at their
// first use and stay. A convolution whose first engine finds no room takes the next one, as PyTorch
// does after the allocator has given back what it had cached. With cudnn.benchmark each distinct
// convolution first tries all its engines in a buffer of the largest workspace that the device
// could hold.
#pragma once

#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/process_replay.hpp"

namespace stowage {

struct ReplaySettings {
  AllocatorSettings allocator;
  Bytes limit;  ///< what the device has for the allocator
  std::vector<RuntimeBuffer> buffers;
  /// What else of the device is taken: by this process (context and libraries) and by others, or to
  /// stay free. Fractions in the allocator's settings are of all three together.
  Bytes outside = {}, others = {};
};

/// ProcessReplay::same_limits holds for allocators that look at what a device has only where the
/// driver refuses (SharedReplays::serves): what was granted is granted under each of them, and what
/// was refused is refused. O(steps * touches * log blocks).
[[nodiscard]] ProcessReplay replay_process(const SizedStep& step,
                                           const std::vector<Touches>& touches,
                                           const ReplaySettings& settings);

/// By node of the process' last step: the most that the allocator holds of the driver while the
/// node runs. Empty where the process fails. O(replay_process).
[[nodiscard]] std::vector<Bytes> reserved_by_node(const SizedStep& step,
                                                  const std::vector<Touches>& touches,
                                                  const ReplaySettings& settings);

}  // namespace stowage
