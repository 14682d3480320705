#include "estimator/allocator/best_fit_allocator.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stowage {

namespace {

constexpr Bytes small_piece = 1_MiB;

}  // namespace

BestFitAllocator::BestFitAllocator(const BestFitSettings& settings, DeviceMemory& device,
                                   std::string holder)
    : settings_(settings), device_(device), holder_(device.add_holder(std::move(holder))) {
  assert(settings.granularity > 0_B);
}

BestFitAllocator::~BestFitAllocator() {
  device_.give_back(holder_, device_.holders()[holder_.index()].held);
}

bool BestFitAllocator::preallocate() {
  return settings_.preallocated == 0_B ||
         add_segment(round_up(settings_.preallocated, settings_.granularity));
}

// The driver serves small requests from pages that it does not return.
bool BestFitAllocator::take(Bytes size) {
  if (size >= small_piece) return device_.take(holder_, size);
  if (small_pieces_ + size > small_pages_) {
    if (!device_.take(holder_, device_page)) return false;
    small_pages_ += device_page;
  }
  small_pieces_ += size;
  return true;
}

void BestFitAllocator::give_back(Bytes size) {
  if (size >= small_piece) return device_.give_back(holder_, size);
  small_pieces_ -= size;
}

bool BestFitAllocator::add_segment(Bytes size) {
  if (!take(size)) return false;
  blocks_.insert(blocks_.add_segment(size, default_stream, BlockPool::large, false));
  statistics_.reserved.raise(size);
  statistics_.segments.raise(1);
  ++statistics_.device_allocations;
  return true;
}

void BestFitAllocator::remove_segment(BlockId id) {
  const Bytes size = blocks_[id].size;
  blocks_.erase(id);
  blocks_.remove_segment(id);
  give_back(size);
  statistics_.reserved.lower(size);
  statistics_.segments.lower(1);
  ++statistics_.device_releases;
}

tl::expected<BlockId, OutOfMemory> BestFitAllocator::allocate(Bytes bytes) {
  assert(bytes >= 0_B);
  if (bytes == 0_B) return BlockId{};
  const Bytes rounded = round_up(bytes, settings_.granularity);
  const auto best = [&] {
    const FreeBlock* found =
        blocks_.free_blocks(BlockPool::large).first_after({default_stream, rounded, -1});
    return found == nullptr ? BlockId{} : found->block;
  };
  BlockId id = best();
  const Bytes segment = settings_.caches ? std::max(rounded, settings_.least_segment) : rounded;
  if (!id.valid() && add_segment(segment)) id = best();
  if (!id.valid()) {
    ++statistics_.ooms;
    return tl::unexpected(OutOfMemory{.requested = bytes,
                                      .tried = segment,
                                      .total = device_.total(),
                                      .free = device_.free(),
                                      .process = device_.used() - device_.in_use_by_others(),
                                      .allowed = device_.total(),
                                      .allocated = statistics_.allocated.current,
                                      .reserved = statistics_.reserved.current});
  }
  if (blocks_[id].size > rounded) {
    blocks_.take_lower(id, rounded);
  } else {
    blocks_.erase(id);
  }
  MemoryBlock& block = blocks_[id];
  block.allocated = true;
  block.requested = bytes;
  statistics_.allocated.raise(block.size);
  statistics_.active.raise(block.size);
  statistics_.requested.raise(bytes);
  return id;
}

void BestFitAllocator::free(BlockId id) {
  if (!id.valid()) return;
  MemoryBlock& block = blocks_[id];
  assert(block.allocated);
  statistics_.allocated.lower(block.size);
  statistics_.active.lower(block.size);
  statistics_.requested.lower(block.requested);
  block.allocated = false;
  block.requested = 0_B;
  blocks_.insert_merged(id);
  if (!settings_.caches) remove_segment(id);
}

}  // namespace stowage
