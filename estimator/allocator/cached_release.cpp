// How CachingAllocator gives cached memory back to the driver.
#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "estimator/allocator/caching_allocator.hpp"

namespace stowage {

/// Releases just enough of the blocks that are too large to split: one that is large enough alone,
/// or the largest of the stream until they sum up. False where they do not; what was released by
/// then stays so. Expandable segments are not released in this way.
bool CachingAllocator::release_available(const Request& request) {
  if (!settings_.max_split_size || settings_.expandable_segments) return false;
  const Bytes wanted = std::max(request.rounded, *settings_.max_split_size);
  const FreeBlocks& free = blocks_.free_blocks(request.pool);
  const FreeBlock least{request.stream, wanted, -1};
  const FreeBlock* enough = free.first_after(least);
  if (enough != nullptr && enough->stream == request.stream) {
    release_segment(enough->block);
    return true;
  }
  Bytes released;
  while (released < wanted) {
    const FreeBlock* largest = free.last_before(least);
    if (largest == nullptr || largest->stream != request.stream ||
        largest->size < *settings_.max_split_size) {
      break;
    }
    released += largest->size;
    release_segment(largest->block);
  }
  return released >= wanted;
}

void CachingAllocator::release_all() {
  ++statistics_.stream_synchronizations;
  complete_events();
  poll_events();
  release_pool(BlockPool::large);
  release_pool(BlockPool::small);
}

void CachingAllocator::release_pool(BlockPool pool) {
  // Both kinds of release change the set that is walked.
  std::vector<BlockId> whole, expandable;
  for (const FreeBlock& free : blocks_.free_blocks(pool).in_order()) {
    const MemoryBlock& block = blocks_[free.block];
    if (block.expandable) {
      expandable.push_back(free.block);
    } else if (!block.is_split()) {
      whole.push_back(free.block);
    }
  }
  for (const BlockId id : whole) release_segment(id);
  for (const BlockId id : expandable) unmap(id);
}

void CachingAllocator::release_segment(BlockId id) {
  const Bytes size = blocks_[id].size;
  assert(!blocks_[id].is_split() && !blocks_[id].expandable);
  blocks_.erase(id);
  blocks_.remove_segment(id);
  device_.give_back(holder_, size);
  statistics_.segments.lower(1);
  statistics_.reserved.lower(size);
  ++statistics_.device_releases;
}

bool CachingAllocator::collects_garbage() const {
  return settings_.garbage_collection_threshold > 0 && allowed().has_value();
}

/// Releases whole segments of the large pool by age: all of at least the mean age, then all of at
/// least the mean age of the others, until enough is free. A block's age is the number of searches
/// that it has lain through.
void CachingAllocator::collect_garbage() {
  const double share =
      settings_.garbage_collection_threshold * static_cast<double>(allowed()->count());
  const Bytes limit(static_cast<std::int64_t>(share));
  if (statistics_.reserved.current <= limit || settings_.expandable_segments) return;
  const Bytes target = statistics_.reserved.current - limit;

  std::vector<BlockId> candidates;
  std::int64_t total_age = 0;
  for (const FreeBlock& free : blocks_.free_blocks(BlockPool::large).in_order()) {
    const MemoryBlock& block = blocks_[free.block];
    if (block.is_split()) continue;
    candidates.push_back(free.block);
    total_age += blocks_.age(block);
  }
  Bytes reclaimed;
  while (reclaimed < target && !candidates.empty()) {
    const double mean = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    std::vector<BlockId> younger;
    for (const BlockId id : candidates) {
      const std::int64_t age = blocks_.age(blocks_[id]);
      if (static_cast<double>(age) < mean) {
        younger.push_back(id);
        continue;
      }
      total_age -= age;
      reclaimed += blocks_[id].size;
      release_segment(id);
    }
    candidates = std::move(younger);
  }
}

}  // namespace stowage
