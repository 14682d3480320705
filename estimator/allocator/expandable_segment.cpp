// CachingAllocator's expandable segments: a range of addresses per stream and pool, larger than the
// card, to which memory is mapped page by page from its lower end, and from which whole free pages
// are unmapped again.
#include <algorithm>
#include <cassert>

#include "estimator/allocator/caching_allocator.hpp"

namespace stowage {

namespace {

std::int64_t page_floor(std::int64_t offset, Bytes page) {
  return offset / page.count() * page.count();
}

std::int64_t page_ceiling(std::int64_t offset, Bytes page) {
  return page_floor(offset + page.count() - 1, page);
}

}  // namespace

Bytes CachingAllocator::page_of(BlockPool pool) const {
  return pool == BlockPool::small ? small_segment : settings_.large_segment;
}

/// A free block before unmapped addresses counts with the size to which it can grow, so that best
/// fit does not use it for a small request.
const FreeBlock* CachingAllocator::best_expandable(const Request& request) const {
  const FreeBlocks& free = blocks_.free_blocks(request.pool);
  const auto could_become = [&](const FreeBlock& candidate) {
    const BlockId next = blocks_[candidate.block].next;
    if (!next.valid() || blocks_[next].mapped) return candidate.size;
    return candidate.size + blocks_[next].size;
  };
  const auto follower = [&](const FreeBlock& place) {
    const FreeBlock* next = free.first_after(place);
    return next != nullptr && next->stream == request.stream ? next : nullptr;
  };
  const FreeBlock* best = follower({request.stream, request.rounded, -1});
  if (best == nullptr) return nullptr;
  for (const FreeBlock* next = follower(*best);
       next != nullptr && could_become(*next) < could_become(*best); next = follower(*next)) {
    best = next;
  }
  return best;
}

BlockId CachingAllocator::expand(const Request& request) {
  BlockId id = place_to_expand(request);
  if (!blocks_[id].mapped && !map(id, std::min(blocks_[id].size, request.rounded))) return {};
  while (blocks_[id].size < request.rounded) {
    // Mapped and too small: what follows is unmapped, and grows into this one when mapped.
    const BlockId next = blocks_[id].next;
    const Bytes missing = request.rounded - blocks_[id].size;
    if (!map(next, std::min(blocks_[next].size, missing))) return {};
    id = next;
  }
  return id;
}

/// The lowest unmapped block, or the free one before it, from which on free and unmapped blocks
/// make up the size; a new range of addresses where there is none.
BlockId CachingAllocator::place_to_expand(const Request& request) {
  const auto& unmapped = blocks_.unmapped_blocks(request.pool);
  for (auto at = unmapped.lower_bound({request.stream, -1, {}});
       at != unmapped.end() && at->stream == request.stream; ++at) {
    const BlockId before = blocks_[at->block].prev;
    const bool from_before = before.valid() && blocks_[before].is_available();
    const BlockId candidate = from_before ? before : at->block;
    if (has_room(candidate, request.rounded)) return candidate;
  }
  const Bytes room = device_.total() + Bytes(device_.total().count() / 8);
  const BlockId range = blocks_.add_segment(round_up(room, page_of(request.pool)), request.stream,
                                            request.pool, true);
  blocks_.insert(range);
  return range;
}

bool CachingAllocator::has_room(BlockId from, Bytes bytes) const {
  Bytes room;
  for (BlockId id = from; room < bytes && id.valid() && blocks_[id].is_available();
       id = blocks_[id].next) {
    room += blocks_[id].size;
  }
  return room >= bytes;
}

/// Maps whole pages for the lower `bytes` of an unmapped block, all or none.
bool CachingAllocator::map(BlockId id, Bytes bytes) {
  const Bytes page = page_of(blocks_[id].pool);
  const Bytes mapped = round_up(bytes, page);
  assert(!blocks_[id].mapped && mapped <= blocks_[id].size);
  const std::int64_t pages = mapped.count() / page.count();
  for (std::int64_t taken = 0; taken < pages; ++taken) {
    if (device_.take(holder_, page)) continue;
    while (taken-- > 0) device_.give_back(holder_, page);
    return false;
  }
  blocks_.erase(id);
  if (mapped < blocks_[id].size) blocks_.insert(blocks_.split(id, mapped));
  blocks_[id].mapped = true;
  (void)blocks_.merge(id, blocks_[id].prev);
  (void)blocks_.merge(id, blocks_[id].next);
  blocks_.insert(id);
  statistics_.reserved.raise(mapped);
  ++statistics_.device_allocations;
  return true;
}

/// Unmaps the pages that lie in the free block in whole. Where that is all that its range of
/// addresses has, the range goes too.
void CachingAllocator::unmap(BlockId id) {
  const Bytes page = page_of(blocks_[id].pool);
  const std::int64_t base = blocks_[id].segment_begin;
  const std::int64_t begin = base + page_ceiling(blocks_[id].address - base, page);
  const std::int64_t end = base + page_floor(blocks_[id].end() - base, page);
  if (begin >= end) return;
  blocks_.erase(id);
  BlockId middle = id;
  if (begin > blocks_[id].address) {
    middle = blocks_.split(id, Bytes(begin - blocks_[id].address));
    blocks_.insert(id);
  }
  if (end < blocks_[middle].end()) blocks_.insert(blocks_.split(middle, Bytes(end - begin)));
  blocks_[middle].mapped = false;
  (void)blocks_.merge(middle, blocks_[middle].prev);
  (void)blocks_.merge(middle, blocks_[middle].next);

  const Bytes unmapped(end - begin);
  for (std::int64_t i = 0; i < unmapped.count() / page.count(); ++i) {
    device_.give_back(holder_, page);
  }
  statistics_.reserved.lower(unmapped);
  ++statistics_.device_releases;
  if (blocks_[middle].is_split()) {
    blocks_.insert(middle);
  } else {
    blocks_.remove_segment(middle);
  }
}

}  // namespace stowage
