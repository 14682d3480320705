// How much of a card TensorFlow takes for its allocator, and for which logical devices.
//
// Rules of tensorflow/core/common_runtime/gpu/gpu_device.cc (2.5 and later; 2024 where it says so).
// "Free" is what is free when the devices are made, that is after the CUDA context.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "estimator/allocator/bfc_allocator.hpp"

namespace stowage {

struct TensorFlowMemory {
  /// per_process_gpu_memory_fraction, in [0, 1]: the share of the card's total; 0: what is free,
  /// less a reserve. More than 1 means unified memory, which is not simulated.
  double per_process_fraction = 0;
  /// What is left free for others in place of the rule's reserve, fraction or not
  /// (TF_DEVICE_MIN_SYS_MEMORY_IN_MB). Ignored where it is more than what is free.
  std::optional<Bytes> system_reserve;
  /// Limits of the logical devices (LogicalDeviceConfiguration(memory_limit=...)); none: one
  /// device by the rules above.
  std::vector<Bytes> logical_devices;
  bool allow_growth = false;  ///< set_memory_growth, TF_FORCE_GPU_ALLOW_GROWTH
  double fragmentation_fraction = 0;
};

/// What TensorFlow leaves free by itself: 225 MiB where less than 2 GiB are free, else 500 MiB up
/// to compute capability 6.x, 1,050 MiB at 7.x, 1,536 MiB at 8.x, 1,800 MiB from 9.0 on (1,536
/// before 2024).
[[nodiscard]] Bytes tensorflow_reserve(Bytes free, int compute_capability_major);

/// The limits of the logical devices on a card, one at least.
[[nodiscard]] std::vector<Bytes> tensorflow_limits(const TensorFlowMemory& memory,
                                                   const DeviceMemory& device,
                                                   int compute_capability_major);

/// An allocator for each logical device, held by "TensorFlow GPU:0" and so on. Nothing is taken
/// yet: that happens at the first allocation on each, so that libraries that come before it find
/// room that later ones do not.
[[nodiscard]] std::vector<std::unique_ptr<BfcAllocator>> tensorflow_allocators(
    const TensorFlowMemory& memory, DeviceMemory& device, int compute_capability_major);

}  // namespace stowage
