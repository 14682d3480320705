// Settings of PyTorch's allocator: read, and a few sizes rounded and allocated under them.
#include <array>

#include "estimator/allocator/alloc_conf.hpp"
#include "estimator/allocator/caching_allocator.hpp"
#include "estimator/base/largest_memory.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stowage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto conf = parse_alloc_conf(fuzz::text_of(data, size));
  if (!conf) {
    fuzz::require_shown(conf.error());
    return 0;
  }
  const AllocatorSettings& settings = conf->settings;
  constexpr std::array sizes{1_B, 511_B, 513_B, 1_MiB, 3000001_B, 10_MiB, 33_GiB, largest_memory};
  for (const Bytes bytes : sizes) {
    const Bytes rounded = rounded_size(bytes, settings);
    fuzz::require(rounded >= bytes);
    fuzz::require(segment_size(rounded, settings) >= rounded);
  }
  DeviceMemory device(8_GiB);
  CachingAllocator allocator(settings, device);
  for (const Bytes bytes : sizes) {
    const auto block = allocator.allocate(bytes);
    if (block) allocator.free(*block);
  }
  fuzz::require(allocator.statistics().allocated.current == 0_B);
  return 0;
}
