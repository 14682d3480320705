// BestFitAllocator: a memory pool that takes the smallest sufficient free block, splits it, merges
// free neighbours, and never returns memory to the driver. Theano has had two such pools:
//
//            rounds to   asks the driver for at least   at the start
//   CNMeM    512 bytes   what is wanted                 lib.cnmem's share of the card
//   gpuarray 64 bytes    4 MiB                          gpuarray.preallocate's share
//
// Sources: cnmem.cpp (Manager::allocate, findBestBlockUnsafe, extractBlockUnsafe, cnmemInit) of
// NVIDIA/cnmem; src/gpuarray_buffer_cuda.c (cuda_alloc, find_best, extract, allocate, cuda_free) of
// Theano/libgpuarray 0.7. Of blocks of equal size both take the one at the lowest address. Neither
// merges blocks of different segments, and neither retries after the driver has refused.
//
// Without a cache (`caches` is false) each block is a driver allocation of its own and is returned
// when freed.
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
  Bytes least_segment;  ///< smallest request to the driver
  Bytes preallocated;   ///< size of the segment that preallocate() takes
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

  /// Takes the segment that is preallocated at the start. False: the driver has too little.
  [[nodiscard]] bool preallocate();
  /// Allocates a block for `bytes` (>= 0), or says why it cannot. 0 bytes: no block, and nothing
  /// changes.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes bytes);
  /// Precondition: allocated and not yet freed, or no block.
  void free(BlockId id);

  /// allocated: rounded sizes of allocated blocks; reserved: memory taken from the driver;
  /// segments: its allocations.
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
  /// Driver requests under 1 MiB: the sum of their bytes, and the pages that hold them.
  Bytes small_pieces_, small_pages_;
  BlockTable blocks_;
  AllocatorStatistics statistics_;
};

}  // namespace stowage
