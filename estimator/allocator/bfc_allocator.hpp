// BfcAllocator: TensorFlow's GPU allocator ("best fit with coalescing"), simulated.
//
// How it serves a request (xla/tsl/framework/bfc_allocator.cc, 2026; the same in TensorFlow 2):
//   1. round to 256 bytes;
//   2. best fit among its free chunks: the smallest that is large enough, the lowest of equal ones.
//      The 21 bins of the original (256 bytes, 512, ... 256 MiB and more) are ranges of sizes that
//      are searched from the request's own upward, each by size and address: the same order;
//   3. the chunk is split where it is at least twice the size, or larger by 128 MiB or more;
//   4. no fit: another region from the driver. Without growth the first region is the whole limit.
//      With growth it is 2 MiB; each next one is twice the last, or the next doubling that holds
//      the request. It is cut to what the limit leaves, and made smaller in steps of a tenth where
//      the driver refuses;
//   5. refused: regions that are free as a whole go back to the driver, and 4 is tried again.
// What is freed merges with free neighbours of its region. Regions do not merge.
//
// Deterministic. Not simulated: the wait of up to 10 seconds for frees of other threads, host
// memory, unified memory, TF_GPU_ALLOCATOR=cuda_malloc_async, timestamped chunks.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "estimator/allocator/allocator_statistics.hpp"
#include "estimator/allocator/block_table.hpp"
#include "estimator/allocator/device_memory.hpp"
#include "estimator/allocator/out_of_memory.hpp"

namespace stowage {

struct BfcSettings {
  Bytes memory_limit;         ///< see tensorflow_memory.hpp for where it comes from
  bool allow_growth = false;  ///< tf.config.experimental.set_memory_growth
  /// Share of the limit by which a chunk may exceed a request unsplit; 0: 128 MiB
  /// (internal_fragmentation_fraction).
  double fragmentation_fraction = 0;
  bool garbage_collection = true;  ///< step 5 (TF_ENABLE_GPU_GARBAGE_COLLECTION)
};

/// The allocator of one logical device. Not safe for concurrent use. O(log chunks) an operation,
/// except for step 5.
class BfcAllocator {
 public:
  /// The device outlives the allocator, which becomes one of its holders.
  BfcAllocator(const BfcSettings& settings, DeviceMemory& device,
               std::string holder = "TensorFlow");
  ~BfcAllocator();
  BfcAllocator(const BfcAllocator&) = delete;
  BfcAllocator& operator=(const BfcAllocator&) = delete;

  /// Allocates a chunk for `bytes` (>= 0), or says why it cannot. 0 bytes: no chunk, and nothing
  /// changes.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes bytes);
  /// Precondition: allocated and not yet freed, or no chunk.
  void free(BlockId id);

  /// allocated: bytes_in_use; reserved: pool_bytes, regions as asked of the driver; segments:
  /// regions; inactive_split: free chunks in regions that are in use; alloc_retries: step 5 taken.
  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }
  void reset_peaks() { statistics_.reset_peaks(); }
  [[nodiscard]] Bytes size_of(BlockId id) const { return chunks_[id].size; }
  [[nodiscard]] Bytes memory_limit() const { return settings_.memory_limit; }
  [[nodiscard]] Bytes largest_free_chunk() const;

 private:
  [[nodiscard]] BlockId find(Bytes rounded) const;
  [[nodiscard]] bool extend(Bytes rounded);
  void double_next_region();
  [[nodiscard]] Bytes region_from_driver(Bytes wanted, Bytes least);
  [[nodiscard]] bool release_free_regions(Bytes rounded);
  void hand_out(BlockId id, Bytes asked, Bytes rounded);

  BfcSettings settings_;
  DeviceMemory& device_;
  HolderId holder_;
  Bytes next_region_;     ///< size of the next region, before limits
  Bytes largest_excess_;  ///< a larger excess is split off
  BlockTable chunks_;     ///< one pool and one stream; a region is a segment
  AllocatorStatistics statistics_;
};

/// The failure as TensorFlow logs it: "Allocator (GPU_0_bfc) ran out of memory trying to allocate
/// 1.00GiB (rounded to 1073741824)".
[[nodiscard]] std::string tensorflow_message(const OutOfMemory& failure);

/// A size as TensorFlow prints it: "512B", "1.5KiB", "20.00MiB".
[[nodiscard]] std::string tensorflow_size(Bytes bytes);

}  // namespace stowage
