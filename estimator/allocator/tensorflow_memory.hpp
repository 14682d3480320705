// The memory limits of TensorFlow's allocators: how much of a card each logical device may use.
//
// Rules of tensorflow/core/common_runtime/gpu/gpu_device.cc (2.5 and later; 2024 where it says so).
// "Free" memory is measured when the devices are created, after the CUDA context.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "estimator/allocator/bfc_allocator.hpp"

namespace stowage {

struct TensorFlowMemory {
  /// per_process_gpu_memory_fraction, in [0, 1]: the share of the card's total; 0: the free memory
  /// minus a reserve. More than 1 means unified memory, which is not simulated.
  double per_process_fraction = 0;
  /// Memory to leave free, instead of the rule's reserve, also with a fraction
  /// (TF_DEVICE_MIN_SYS_MEMORY_IN_MB). Ignored if it is more than the free memory.
  std::optional<Bytes> system_reserve;
  /// Limits of the logical devices (LogicalDeviceConfiguration(memory_limit=...)); none: one
  /// device by the rules above.
  std::vector<Bytes> logical_devices;
  bool allow_growth = false;  ///< set_memory_growth, TF_FORCE_GPU_ALLOW_GROWTH
  double fragmentation_fraction = 0;
};

/// The memory that TensorFlow leaves free by default: 225 MiB where less than 2 GiB are free, else
/// 500 MiB up to compute capability 6.x, 1,050 MiB at 7.x, 1,536 MiB at 8.x, 1,800 MiB from 9.0 on
/// (1,536 before 2024).
[[nodiscard]] Bytes tensorflow_reserve(Bytes free, int compute_capability_major);

/// The memory limit of each logical device on a card; there is at least one.
[[nodiscard]] std::vector<Bytes> tensorflow_limits(const TensorFlowMemory& memory,
                                                   const DeviceMemory& device,
                                                   int compute_capability_major);

/// An allocator for each logical device, as the holders "TensorFlow GPU:0" and so on. Each takes
/// its memory at its first allocation, so a library that loads before that still finds room.
[[nodiscard]] std::vector<std::unique_ptr<BfcAllocator>> tensorflow_allocators(
    const TensorFlowMemory& memory, DeviceMemory& device, int compute_capability_major);

}  // namespace stowage
