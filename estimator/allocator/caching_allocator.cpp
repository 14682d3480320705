#include "estimator/allocator/caching_allocator.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage {

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, DeviceMemory& device,
                                   std::string holder)
    : settings_(settings), device_(device), holder_(device.add_holder(std::move(holder))) {}

CachingAllocator::~CachingAllocator() {
  device_.give_back(holder_, device_.holders()[holder_.index()].held);
}

tl::expected<BlockId, OutOfMemory> CachingAllocator::allocate(Bytes bytes, StreamId stream) {
  assert(bytes >= 0_B && stream.valid());
  if (bytes == 0_B) return BlockId{};
  poll_events();
  const Bytes rounded = rounded_size(bytes, settings_);
  const Request request{
      .asked = bytes,
      .rounded = rounded,
      .segment = segment_size(rounded, settings_),
      .stream = stream,
      .pool = rounded <= largest_small_block ? BlockPool::small : BlockPool::large};
  BlockId id = find_free(request);
  if (!id.valid()) id = obtain(request);
  if (!id.valid()) return tl::unexpected(failure(request));
  hand_out(request, id);
  return id;
}

BlockId CachingAllocator::find_free(const Request& request) {
  if (collects_garbage()) blocks_.count_search(request.pool);
  const FreeBlock* best = nullptr;
  if (settings_.expandable_segments) {
    best = best_expandable(request);
  } else {
    best = blocks_.free_blocks(request.pool).first_after({request.stream, request.rounded, -1});
  }
  // Only the best fit is considered: if it may not be used, no other block is.
  if (best == nullptr || best->stream != request.stream || !fits(request, best->size)) return {};
  return best->block;
}

/// Blocks too large to be split are not wasted on requests that are much smaller.
bool CachingAllocator::fits(const Request& request, Bytes size) const {
  if (!settings_.max_split_size) return true;
  if (request.rounded < *settings_.max_split_size) return size < *settings_.max_split_size;
  return size < request.rounded + settings_.max_non_split_rounding;
}

BlockId CachingAllocator::obtain(const Request& request) {
  if (collects_garbage()) collect_garbage();
  BlockId id = from_driver(request);
  if (id.valid()) return id;
  if (refused_early(request)) {
    ++statistics_.early_refusals;
    return {};
  }
  if (release_available(request)) id = from_driver(request);
  if (id.valid()) return id;
  release_all();
  ++statistics_.alloc_retries;
  id = from_driver(request);
  if (!id.valid()) ++statistics_.ooms;
  return id;
}

BlockId CachingAllocator::from_driver(const Request& request) {
  const std::optional<Bytes> limit = allowed();
  if (limit && statistics_.reserved.current + request.segment > *limit) return {};
  if (refused_early(request)) return {};
  if (settings_.expandable_segments) return expand(request);
  if (!device_.take(holder_, request.segment)) return {};
  statistics_.segments.raise(1);
  statistics_.reserved.raise(request.segment);
  ++statistics_.device_allocations;
  const BlockId id = blocks_.add_segment(request.segment, request.stream, request.pool, false);
  blocks_.insert(id);
  return id;
}

bool CachingAllocator::refused_early(const Request& request) const {
  // A fraction below 1 is the limit of from_driver already, and that one allows a second try.
  return settings_.refuse_early && !allowed() &&
         statistics_.reserved.current + request.segment > device_.total();
}

std::optional<Bytes> CachingAllocator::allowed() const {
  if (!settings_.memory_fraction || *settings_.memory_fraction >= 1) return std::nullopt;
  const double share = *settings_.memory_fraction * static_cast<double>(device_.total().count());
  return Bytes(static_cast<std::int64_t>(share));
}

bool CachingAllocator::leaves_remainder(const Request& request, Bytes remainder) const {
  if (request.pool == BlockPool::small || settings_.expandable_segments) {
    return remainder >= smallest_block;
  }
  const bool may_split = !settings_.max_split_size || request.rounded < *settings_.max_split_size;
  return may_split && remainder > largest_small_block;
}

void CachingAllocator::hand_out(const Request& request, BlockId id) {
  const bool was_split = blocks_[id].is_split();
  const bool counts = !blocks_[id].expandable;
  const Bytes whole = blocks_[id].size;
  if (leaves_remainder(request, whole - request.rounded)) {
    blocks_.take_lower(id, request.rounded);
    if (counts && was_split) statistics_.inactive_split.lower(request.rounded);
    if (counts && !was_split) statistics_.inactive_split.raise(whole - request.rounded);
  } else {
    blocks_.erase(id);
    if (counts && was_split) statistics_.inactive_split.lower(whole);
  }
  MemoryBlock& block = blocks_[id];
  block.allocated = true;
  block.requested = request.asked;
  statistics_.allocated.raise(block.size);
  statistics_.active.raise(block.size);
  statistics_.requested.raise(block.requested);
}

OutOfMemory CachingAllocator::failure(const Request& request) const {
  return {.requested = request.asked,
          .tried = request.segment,
          .total = device_.total(),
          .free = device_.free(),
          .process = device_.used() - device_.in_use_by_others(),
          .allowed = allowed(),
          .allocated = statistics_.allocated.current,
          .reserved = statistics_.reserved.current,
          .refused_early = refused_early(request)};
}

void CachingAllocator::free(BlockId id) {
  if (!id.valid()) return;
  MemoryBlock& block = blocks_[id];
  assert(block.allocated);
  block.allocated = false;
  statistics_.allocated.lower(block.size);
  if (!block.used_on_other_streams) {
    become_free(id);
    return;
  }
  const auto used_on = used_on_.find(id);
  for (const StreamId stream : used_on->second) {
    ++block.pending_events;
    waiting_[stream].blocks.push_back(id);
  }
  used_on_.erase(used_on);
  block.used_on_other_streams = false;
}

void CachingAllocator::become_free(BlockId id) {
  const Bytes own = blocks_[id].size;
  const Bytes requested = std::exchange(blocks_[id].requested, {});
  const Bytes gained = blocks_.insert_merged(id);
  const MemoryBlock& block = blocks_[id];
  if (!block.expandable) {
    // One change of the level, as the figure's peak is not to see the moment between.
    const Bytes change = (block.is_split() ? block.size : 0_B) - gained;
    if (change > 0_B) {
      statistics_.inactive_split.raise(change);
    } else {
      statistics_.inactive_split.lower(0_B - change);
    }
  }
  statistics_.active.lower(own);
  statistics_.requested.lower(requested);
}

void CachingAllocator::record_stream(BlockId id, StreamId stream) {
  if (!id.valid()) return;
  MemoryBlock& block = blocks_[id];
  assert(block.allocated && stream.valid());
  if (stream == block.stream) return;
  block.used_on_other_streams = true;
  used_on_[id].insert(stream);
}

void CachingAllocator::complete_events(StreamId stream) {
  const auto at = waiting_.find(stream);
  if (at != waiting_.end()) at->second.complete = at->second.blocks.size();
}

void CachingAllocator::complete_events() {
  for (auto& [stream, waiting] : waiting_) waiting.complete = waiting.blocks.size();
}

void CachingAllocator::poll_events() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    WaitingBlocks& waiting = at->second;
    for (; waiting.complete > 0; --waiting.complete) {
      const BlockId id = waiting.blocks.front();
      waiting.blocks.pop_front();
      if (--blocks_[id].pending_events == 0) become_free(id);
    }
    at = waiting.blocks.empty() ? waiting_.erase(at) : std::next(at);
  }
}

void CachingAllocator::empty_cache() { release_all(); }

Bytes CachingAllocator::largest_cached_block() const {
  Bytes largest;
  for (const BlockPool pool : {BlockPool::small, BlockPool::large}) {
    const FreeBlocks& free = blocks_.free_blocks(pool);
    const FreeBlock* of_stream = free.last();
    while (of_stream != nullptr) {
      largest = std::max(largest, of_stream->size);
      of_stream = free.last_before({of_stream->stream, 0_B, -1});
    }
  }
  return largest;
}

Bytes CachingAllocator::largest_cached_block(BlockPool pool, StreamId stream) const {
  const FreeBlock* const last =
      blocks_.free_blocks(pool).last_before({StreamId::of(stream.index() + 1), 0_B, -1});
  return last != nullptr && last->stream == stream ? last->size : 0_B;
}

std::vector<SegmentSnapshot> CachingAllocator::snapshot() const {
  std::vector<SegmentSnapshot> segments;
  std::int64_t end = -1;  // of the block before
  for (const BlockId id : blocks_.by_address()) {
    const MemoryBlock& block = blocks_[id];
    if (!block.mapped) continue;
    const bool goes_on = block.address != block.segment_begin && end == block.address;
    end = block.end();
    if (!goes_on) {
      segments.push_back({block.address, {}, block.stream, block.pool, block.expandable, {}});
    }
    const BlockState state = block.allocated            ? BlockState::allocated
                             : block.pending_events > 0 ? BlockState::awaiting_free
                                                        : BlockState::inactive;
    segments.back().reserved += block.size;
    segments.back().blocks.push_back({block.address, block.size, block.requested, state});
  }
  return segments;
}

}  // namespace stowage
