#include "estimator/allocator/bfc_allocator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace stowage {

namespace {

constexpr Bytes smallest_chunk = 256_B;
constexpr Bytes first_growing_region = 2_MiB;
constexpr Bytes default_excess = 128_MiB;

Bytes rounded_chunk(Bytes bytes) { return round_up(bytes, smallest_chunk); }

Bytes rounded_down(Bytes bytes) {
  return Bytes(bytes.count() / smallest_chunk.count() * smallest_chunk.count());
}

}  // namespace

BfcAllocator::BfcAllocator(const BfcSettings& settings, DeviceMemory& device, std::string holder)
    : settings_(settings),
      device_(device),
      holder_(device.add_holder(std::move(holder))),
      next_region_(rounded_chunk(settings.allow_growth
                                     ? std::min(settings.memory_limit, first_growing_region)
                                     : settings.memory_limit)),
      largest_excess_(default_excess) {
  assert(settings.memory_limit >= 0_B);
  if (settings.fragmentation_fraction > 0) {
    const auto limit = static_cast<double>(settings.memory_limit.count());
    largest_excess_ = Bytes(static_cast<std::int64_t>(settings.fragmentation_fraction * limit));
  }
}

BfcAllocator::~BfcAllocator() {
  device_.give_back(holder_, device_.holders()[holder_.index()].held);
}

tl::expected<BlockId, OutOfMemory> BfcAllocator::allocate(Bytes bytes) {
  assert(bytes >= 0_B);
  if (bytes == 0_B) return BlockId{};
  const Bytes rounded = rounded_chunk(bytes);
  BlockId id = find(rounded);
  if (!id.valid() && extend(rounded)) id = find(rounded);
  if (!id.valid() && release_free_regions(rounded)) {
    ++statistics_.alloc_retries;
    if (extend(rounded)) id = find(rounded);
  }
  if (id.valid()) {
    hand_out(id, bytes, rounded);
    return id;
  }
  ++statistics_.ooms;
  return tl::unexpected(OutOfMemory{.requested = bytes,
                                    .tried = rounded,
                                    .total = device_.total(),
                                    .free = device_.free(),
                                    .process = device_.used() - device_.in_use_by_others(),
                                    .allowed = settings_.memory_limit,
                                    .allocated = statistics_.allocated.current,
                                    .reserved = statistics_.reserved.current});
}

BlockId BfcAllocator::find(Bytes rounded) const {
  const FreeBlocks& free = chunks_.free_blocks(BlockPool::large);
  const FreeBlock* best = free.first_after({default_stream, rounded, -1});
  return best == nullptr ? BlockId{} : best->block;
}

/// Adds a region that holds the request; false where the limit or the driver does not allow it.
bool BfcAllocator::extend(Bytes rounded) {
  const Bytes available = rounded_down(settings_.memory_limit - statistics_.reserved.current);
  if (rounded > available) return false;
  // The doubling up to the request is kept even if the driver refuses; the doubling for the next
  // region is not.
  const bool grown = rounded > next_region_;
  while (rounded > next_region_) double_next_region();
  const Bytes region = region_from_driver(std::min(next_region_, available), rounded);
  if (region == 0_B) return false;
  if (!grown) double_next_region();

  statistics_.segments.raise(1);
  statistics_.reserved.raise(region);
  ++statistics_.device_allocations;
  chunks_.insert(chunks_.add_segment(region, default_stream, BlockPool::large, false));
  return true;
}

// Doubles at most up to the limit, to which regions are cut anyway.
void BfcAllocator::double_next_region() {
  if (next_region_ < settings_.memory_limit) next_region_ = next_region_ * 2;
}

/// The size that the driver gave, from `wanted` down in steps of a tenth; 0 below `least`.
Bytes BfcAllocator::region_from_driver(Bytes wanted, Bytes least) {
  constexpr float step = 0.9F;  // in single precision, as the original has it
  while (!device_.take(holder_, wanted)) {
    const Bytes smaller(static_cast<std::int64_t>(static_cast<float>(wanted.count()) * step));
    wanted = std::min(rounded_chunk(smaller), wanted - smallest_chunk);
    if (wanted < least) return {};
  }
  return wanted;
}

/// False: there is none, or all of them together are too small.
bool BfcAllocator::release_free_regions(Bytes rounded) {
  if (!settings_.garbage_collection) return false;
  std::vector<BlockId> whole;
  Bytes total;
  for (const FreeBlock& free : chunks_.free_blocks(BlockPool::large).in_order()) {
    if (chunks_[free.block].is_split()) continue;
    whole.push_back(free.block);
    total += free.size;
  }
  const Bytes unused = settings_.memory_limit - statistics_.reserved.current;
  if (whole.empty() || rounded > unused + total) return false;
  for (const BlockId id : whole) {
    const Bytes size = chunks_[id].size;
    chunks_.erase(id);
    chunks_.remove_segment(id);
    device_.give_back(holder_, size);
    statistics_.segments.lower(1);
    statistics_.reserved.lower(size);
    ++statistics_.device_releases;
  }
  return true;
}

void BfcAllocator::hand_out(BlockId id, Bytes asked, Bytes rounded) {
  const Bytes whole = chunks_[id].size;
  const bool was_split = chunks_[id].is_split();
  const bool split = whole >= rounded * 2 || whole - rounded >= largest_excess_;
  if (split && whole > rounded) {
    chunks_.take_lower(id, rounded);
    if (was_split) {
      statistics_.inactive_split.lower(rounded);
    } else {
      statistics_.inactive_split.raise(whole - rounded);
    }
  } else {
    chunks_.erase(id);
    if (was_split) statistics_.inactive_split.lower(whole);
  }
  MemoryBlock& chunk = chunks_[id];
  chunk.allocated = true;
  chunk.requested = asked;
  statistics_.allocated.raise(chunk.size);
  statistics_.active.raise(chunk.size);
  statistics_.requested.raise(asked);
}

void BfcAllocator::free(BlockId id) {
  if (!id.valid()) return;
  MemoryBlock& chunk = chunks_[id];
  assert(chunk.allocated);
  chunk.allocated = false;
  const Bytes own = chunk.size;
  statistics_.requested.lower(std::exchange(chunk.requested, {}));
  const Bytes gained = chunks_.insert_merged(id);
  const Bytes change = (chunk.is_split() ? chunk.size : 0_B) - gained;
  if (change > 0_B) {
    statistics_.inactive_split.raise(change);
  } else {
    statistics_.inactive_split.lower(0_B - change);
  }
  statistics_.allocated.lower(own);
  statistics_.active.lower(own);
}

Bytes BfcAllocator::largest_free_chunk() const {
  const FreeBlock* last = chunks_.free_blocks(BlockPool::large).last();
  return last == nullptr ? Bytes{} : last->size;
}

std::string tensorflow_size(Bytes bytes) {
  std::int64_t count = bytes.count();
  if (count < 1024) return fmt::format("{}B", count);
  std::string_view units = "KMGTPE";
  for (; count >= std::int64_t{1024} * 1024; count /= 1024) units.remove_prefix(1);
  const int decimals = units.front() == 'K' ? 1 : 2;
  return fmt::format("{:.{}f}{}iB", static_cast<double>(count) / 1024.0, decimals, units.front());
}

std::string tensorflow_message(const OutOfMemory& failure) {
  return fmt::format(
      "Allocator (GPU_0_bfc) ran out of memory trying to allocate {} (rounded to {})",
      tensorflow_size(failure.requested), failure.tried.count());
}

}  // namespace stowage
