// BestFitAllocator: a pool that takes the smallest free block that is large enough, splits it,
// joins free neighbours, and gives nothing back to the driver. Theano had two of the kind:
//
//            rounds to   asks the driver for at least   at the start
//   CNMeM    512 bytes   what is wanted                 lib.cnmem's share of the card
//   gpuarray 64 bytes    4 MiB                          gpuarray.preallocate's share
//
// Sources: cnmem.cpp (Manager::allocate, findBestBlockUnsafe, extractBlockUnsafe, cnmemInit) of
// NVIDIA/cnmem; src/gpuarray_buffer_cuda.c (cuda_alloc, find_best, extract, allocate, cuda_free) of
// Theano/libgpuarray 0.7. Of equal blocks both take the lowest. Neither joins blocks that came from
// the driver in two requests, and neither tries again after the driver has refused.
//
// Without a cache (`caches` false) each block is the driver's and goes back to it.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "estimator/allocator/allocator_statistics.hpp"
#include "estimator/allocator/block_table.hpp"
#include "estimator/allocator/device_memory.hpp"
#include "estimator/allocator/out_of_memory.hpp"

namespace stowage {

struct BestFitSettings {
  Bytes granularity{512};
  Bytes least_segment;  ///< the least that is asked of the driver
  Bytes preallocated;   ///< taken by preallocate()
  bool caches = true;
};

/// Not safe for concurrent use. O(log blocks) an operation.
class BestFitAllocator {
 public:
  /// The device outlives the allocator, which becomes one of its holders.
  BestFitAllocator(const BestFitSettings& settings, DeviceMemory& device, std::string holder);
  ~BestFitAllocator();
  BestFitAllocator(const BestFitAllocator&) = delete;
  BestFitAllocator& operator=(const BestFitAllocator&) = delete;

  /// Takes what is to be taken at the start; false where the driver has less.
  [[nodiscard]] bool preallocate();
  /// A block for `bytes` (>= 0), or why there is none. No bytes: no block, and no change at all.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes bytes);
  /// Precondition: allocated and not yet freed, or no block.
  void free(BlockId id);

  /// allocated: handed out, rounded; reserved: held from the driver; segments: pieces of it.
  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }
  void reset_peaks() { statistics_.reset_peaks(); }

 private:
  [[nodiscard]] bool take(Bytes size);
  void give_back(Bytes size);
  [[nodiscard]] bool add_segment(Bytes size);
  void remove_segment(BlockId id);

  BestFitSettings settings_;
  DeviceMemory& device_;
  HolderId holder_;
  Bytes small_pieces_, small_pages_;  ///< of the driver's requests under 1 MiB
  BlockTable blocks_;
  AllocatorStatistics statistics_;
};

}  // namespace stowage
