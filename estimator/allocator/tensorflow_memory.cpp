#include "estimator/allocator/tensorflow_memory.hpp"

#include <fmt/format.h>

#include <cassert>

namespace stowage {

namespace {

Bytes whole_card_limit(const TensorFlowMemory& memory, const DeviceMemory& device,
                       int compute_capability_major) {
  const Bytes free = device.free();
  if (memory.system_reserve && *memory.system_reserve <= free) {
    return free - *memory.system_reserve;
  }
  if (memory.per_process_fraction > 0) {
    const auto total = static_cast<double>(device.total().count());
    return Bytes(static_cast<std::int64_t>(total * memory.per_process_fraction));
  }
  const Bytes reserve = tensorflow_reserve(free, compute_capability_major);
  return reserve < free ? free - reserve : free;
}

}  // namespace

Bytes tensorflow_reserve(Bytes free, int compute_capability_major) {
  if (free < 2_GiB) return 225_MiB;
  if (compute_capability_major <= 6) return 500_MiB;
  if (compute_capability_major == 7) return 1050_MiB;
  if (compute_capability_major == 8) return 1536_MiB;
  return 1800_MiB;
}

std::vector<Bytes> tensorflow_limits(const TensorFlowMemory& memory, const DeviceMemory& device,
                                     int compute_capability_major) {
  assert(memory.per_process_fraction >= 0 && memory.per_process_fraction <= 1);
  if (!memory.logical_devices.empty()) return memory.logical_devices;
  return {whole_card_limit(memory, device, compute_capability_major)};
}

std::vector<std::unique_ptr<BfcAllocator>> tensorflow_allocators(const TensorFlowMemory& memory,
                                                                 DeviceMemory& device,
                                                                 int compute_capability_major) {
  std::vector<std::unique_ptr<BfcAllocator>> allocators;
  for (const Bytes limit : tensorflow_limits(memory, device, compute_capability_major)) {
    const BfcSettings settings{.memory_limit = limit,
                               .allow_growth = memory.allow_growth,
                               .fragmentation_fraction = memory.fragmentation_fraction};
    allocators.push_back(std::make_unique<BfcAllocator>(
        settings, device, fmt::format("TensorFlow GPU:{}", allocators.size())));
  }
  return allocators;
}

}  // namespace stowage
