// CachingAllocator: PyTorch's CUDA caching allocator, simulated block by block.
//
// How it serves a request (c10/cuda/CUDACachingAllocator.cpp of 2.15; docs/allocators.md explains
// the rules):
//   1. round: to 512 bytes, or as roundup_power2_divisions says;
//   2. best fit among the free blocks of its stream, in the small pool (up to 1 MiB) or in the
//      large one; the block is split and the request gets the lower part, unless little is left
//      over in the large pool (1 MiB or less): then it gets the block whole;
//   3. no fit: a segment from the driver, of 2 MiB, of 20 MiB (requests below 10 MiB) or of its
//      own size rounded to 2 MiB;
//   4. refused: release what is cached and try again; then give up.
// A freed block stays reserved, merged with free neighbours of its segment, until step 4 or
// empty_cache().
//
// Deterministic. Not simulated: private pools of CUDA graphs and of users, callbacks that free
// memory, pinned host memory, backend:cudaMallocAsync.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/allocator/allocator_statistics.hpp"
#include "estimator/allocator/block_table.hpp"
#include "estimator/allocator/device_memory.hpp"
#include "estimator/allocator/out_of_memory.hpp"

namespace stowage {

enum class BlockState {
  allocated,
  awaiting_free,  ///< freed, but other streams may still use it
  inactive,
};

struct BlockSnapshot {
  std::int64_t address = 0;
  Bytes size;
  Bytes requested;  ///< 0 where inactive
  BlockState state = BlockState::inactive;
  bool operator==(const BlockSnapshot&) const = default;
};

/// A segment, or a run of mapped blocks of an expandable one, as torch.cuda.memory_snapshot lists
/// it.
struct SegmentSnapshot {
  std::int64_t address = 0;
  Bytes reserved;  ///< the sum of its blocks
  StreamId stream;
  BlockPool pool = BlockPool::large;
  bool expandable = false;
  std::vector<BlockSnapshot> blocks;  ///< by address
  bool operator==(const SegmentSnapshot&) const = default;
};

/// The allocator of one device in one process. Not safe for concurrent use. O(log blocks) an
/// operation, except that a release visits all cached blocks and the growth of an expandable
/// segment visits its unmapped blocks.
class CachingAllocator {
 public:
  /// The device outlives the allocator, which becomes one of its holders.
  CachingAllocator(const AllocatorSettings& settings, DeviceMemory& device,
                   std::string holder = "PyTorch");
  ~CachingAllocator();  ///< returns all memory to the device
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Reserves room for about that many blocks. Saves time, and changes no result.
  void expect(std::size_t blocks) { blocks_.reserve(blocks); }

  /// Allocates a block for `bytes` (>= 0), or says why it cannot. A failed call changes nothing,
  /// except that cached memory may have been released. 0 bytes: no block, and nothing changes.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes bytes,
                                                            StreamId stream = default_stream);
  /// Precondition: allocated and not yet freed, or no block.
  void free(BlockId id);

  /// Records that the block is used on another stream too. Once freed, it stays active until that
  /// stream has finished the work it had at the time of the free. Ignored for the block's own
  /// stream.
  void record_stream(BlockId id, StreamId stream);
  /// Declares all work on the stream (or on all streams) finished. Blocks that waited for it become
  /// free at the next allocation, which is when PyTorch polls the events.
  void complete_events(StreamId stream);
  void complete_events();

  /// Waits for all streams; whole free segments (of expandable ones whole free pages) go back to
  /// the driver.
  void empty_cache();

  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }
  void reset_peaks() { statistics_.reset_peaks(); }
  [[nodiscard]] Bytes size_of(BlockId id) const { return blocks_[id].size; }
  [[nodiscard]] std::int64_t address_of(BlockId id) const { return blocks_[id].address; }
  /// The largest free block of any stream: cudnn.benchmark asks for it.
  [[nodiscard]] Bytes largest_cached_block() const;
  /// The largest free block of one pool and stream.
  [[nodiscard]] Bytes largest_cached_block(BlockPool pool, StreamId stream) const;
  [[nodiscard]] std::vector<SegmentSnapshot> snapshot() const;  ///< by address

  [[nodiscard]] const AllocatorSettings& settings() const { return settings_; }
  [[nodiscard]] const DeviceMemory& device() const { return device_; }

 private:
  struct Request {
    Bytes asked, rounded, segment;
    StreamId stream;
    BlockPool pool;
  };
  struct WaitingBlocks {
    std::deque<BlockId> blocks;  ///< in the order of their events
    std::size_t complete = 0;    ///< number of leading blocks whose events are done
  };

  // caching_allocator.cpp
  [[nodiscard]] BlockId find_free(const Request& request);
  [[nodiscard]] bool fits(const Request& request, Bytes size) const;
  [[nodiscard]] BlockId obtain(const Request& request);
  [[nodiscard]] BlockId from_driver(const Request& request);
  [[nodiscard]] bool refused_early(const Request& request) const;
  [[nodiscard]] bool leaves_remainder(const Request& request, Bytes remainder) const;
  void hand_out(const Request& request, BlockId id);
  [[nodiscard]] OutOfMemory failure(const Request& request) const;
  void poll_events();
  void become_free(BlockId id);
  [[nodiscard]] std::optional<Bytes> allowed() const;

  // cached_release.cpp
  [[nodiscard]] bool release_available(const Request& request);
  void release_all();
  void release_pool(BlockPool pool);
  void release_segment(BlockId id);
  void collect_garbage();
  [[nodiscard]] bool collects_garbage() const;

  // expandable_segment.cpp
  [[nodiscard]] const FreeBlock* best_expandable(const Request& request) const;
  [[nodiscard]] BlockId expand(const Request& request);
  [[nodiscard]] BlockId place_to_expand(const Request& request);
  [[nodiscard]] bool has_room(BlockId from, Bytes bytes) const;
  [[nodiscard]] bool map(BlockId id, Bytes bytes);
  void unmap(BlockId id);
  [[nodiscard]] Bytes page_of(BlockPool pool) const;

  AllocatorSettings settings_;
  DeviceMemory& device_;
  HolderId holder_;
  BlockTable blocks_;
  // Only of blocks with MemoryBlock::used_on_other_streams.
  std::map<BlockId, std::set<StreamId>> used_on_;
  std::map<StreamId, WaitingBlocks> waiting_;
  AllocatorStatistics statistics_;
};

}  // namespace stowage
