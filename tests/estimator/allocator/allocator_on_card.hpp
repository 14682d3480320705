// PyTorch's allocator on a card of its own, for tests of its rules.
#pragma once

#include <doctest/doctest.h>

#include "estimator/allocator/caching_allocator.hpp"

namespace stowage::testing {

struct AllocatorOnCard {
  explicit AllocatorOnCard(Bytes total, const AllocatorSettings& settings = {}, Bytes in_use = {})
      : device(total, in_use), allocator(settings, device) {}

  BlockId take(Bytes bytes, StreamId stream = default_stream) {
    const auto block = allocator.allocate(bytes, stream);
    REQUIRE(block.has_value());
    return *block;
  }
  OutOfMemory refused(Bytes bytes) {
    const auto block = allocator.allocate(bytes);
    REQUIRE_FALSE(block.has_value());
    return block.error();
  }
  [[nodiscard]] const AllocatorStatistics& now() const { return allocator.statistics(); }

  DeviceMemory device;
  CachingAllocator allocator;
};

}  // namespace stowage::testing
