#include "tests/estimator/allocator/naive_bfc_allocator.hpp"

#include <algorithm>

namespace stowage {

namespace {

constexpr std::int64_t mebibyte = 1 << 20;

std::int64_t to_256(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

int bin_of(std::int64_t size) {
  int bin = 0;
  while (bin < 20 && size >= std::int64_t{512} << bin) ++bin;
  return bin;
}

}  // namespace

NaiveBfcAllocator::NaiveBfcAllocator(const BfcSettings& settings, Bytes total, Bytes in_use)
    : settings_(settings),
      total_(total.count() - in_use.count()),
      limit_(settings.memory_limit.count()),
      region_size_(to_256(settings.allow_growth ? std::min(limit_, 2 * mebibyte) : limit_)),
      excess_(settings.fragmentation_fraction > 0
                  ? static_cast<std::int64_t>(settings.fragmentation_fraction *
                                              static_cast<double>(limit_))
                  : 128 * mebibyte) {}

std::int64_t NaiveBfcAllocator::pool() const {
  std::int64_t sum = 0;
  for (const Region& region : regions_) {
    for (const Chunk& chunk : region.chunks) sum += chunk.size;
  }
  return sum;
}

std::int64_t NaiveBfcAllocator::device_free() const {
  std::int64_t free = total_;
  for (const Region& region : regions_) {
    std::int64_t size = 0;
    for (const Chunk& chunk : region.chunks) size += chunk.size;
    free -= (size + 2 * mebibyte - 1) / (2 * mebibyte) * (2 * mebibyte);
  }
  return free;
}

void NaiveBfcAllocator::observe() {
  std::int64_t used = 0, requested = 0, split = 0;
  for (const Region& region : regions_) {
    for (const Chunk& chunk : region.chunks) {
      if (chunk.handle >= 0) {
        used += chunk.size;
        requested += chunk.requested;
      } else if (region.chunks.size() > 1) {
        split += chunk.size;
      }
    }
  }
  const auto follow = [](auto& level, auto now) {
    level.current = now;
    level.peak = std::max(level.peak, now);
  };
  follow(statistics_.allocated, Bytes(used));
  follow(statistics_.active, Bytes(used));
  follow(statistics_.requested, Bytes(requested));
  follow(statistics_.inactive_split, Bytes(split));
  follow(statistics_.reserved, Bytes(pool()));
  follow(statistics_.segments, static_cast<std::int64_t>(regions_.size()));
}

int NaiveBfcAllocator::allocate(Bytes bytes) {
  const std::int64_t rounded = to_256(bytes.count());
  bool placed =
      place(bytes.count(), rounded) || (add_region(rounded) && place(bytes.count(), rounded));
  if (!placed && drop_free_regions(rounded)) {
    ++statistics_.alloc_retries;
    placed = add_region(rounded) && place(bytes.count(), rounded);
  }
  if (!placed) ++statistics_.ooms;
  return placed ? next_handle_++ : -1;
}

bool NaiveBfcAllocator::place(std::int64_t asked, std::int64_t rounded) {
  for (int bin = bin_of(rounded); bin <= 20; ++bin) {
    // Within a bin by size, then by address, which rises with the region's age.
    Region* in = nullptr;
    std::size_t best = 0;
    for (Region& region : regions_) {
      for (std::size_t i = 0; i < region.chunks.size(); ++i) {
        const Chunk& chunk = region.chunks[i];
        if (chunk.handle >= 0 || bin_of(chunk.size) != bin || chunk.size < rounded) continue;
        if (in == nullptr || chunk.size < in->chunks[best].size) {
          in = &region;
          best = i;
        }
      }
    }
    if (in == nullptr) continue;
    Chunk& chunk = in->chunks[best];
    const std::int64_t rest = chunk.size - rounded;
    chunk.handle = next_handle_;
    chunk.requested = asked;
    if (chunk.size >= 2 * rounded || rest >= excess_) {
      chunk.size = rounded;
      Chunk upper;
      upper.size = rest;
      in->chunks.insert(in->chunks.begin() + static_cast<std::ptrdiff_t>(best) + 1, upper);
    }
    observe();
    return true;
  }
  return false;
}

bool NaiveBfcAllocator::add_region(std::int64_t rounded) {
  const std::int64_t available = (limit_ - pool()) / 256 * 256;
  if (rounded > available) return false;
  bool doubled = false;
  for (; region_size_ < rounded; region_size_ *= 2) doubled = true;
  std::int64_t size = std::min(region_size_, available);
  while (device_free() < (size + 2 * mebibyte - 1) / (2 * mebibyte) * (2 * mebibyte)) {
    const std::int64_t less = to_256(static_cast<std::int64_t>(static_cast<float>(size) * 0.9F));
    size = less < size ? less : size - 256;
    if (size < rounded) return false;
  }
  if (!doubled) region_size_ *= 2;
  Region region;
  region.age = next_age_++;
  region.chunks.resize(1);
  region.chunks[0].size = size;
  regions_.push_back(region);
  ++statistics_.device_allocations;
  observe();
  return true;
}

bool NaiveBfcAllocator::drop_free_regions(std::int64_t rounded) {
  if (!settings_.garbage_collection) return false;
  const auto free = [](const Region& region) {
    return std::none_of(region.chunks.begin(), region.chunks.end(),
                        [](const Chunk& chunk) { return chunk.handle >= 0; });
  };
  std::int64_t total = 0;
  for (const Region& region : regions_) {
    if (!free(region)) continue;
    for (const Chunk& chunk : region.chunks) total += chunk.size;
  }
  if (total == 0 || rounded > limit_ - pool() + total) return false;
  const std::size_t before = regions_.size();
  regions_.erase(std::remove_if(regions_.begin(), regions_.end(), free), regions_.end());
  statistics_.device_releases += static_cast<std::int64_t>(before - regions_.size());
  observe();
  return true;
}

void NaiveBfcAllocator::free(int handle) {
  for (Region& region : regions_) {
    auto& chunks = region.chunks;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (chunks[i].handle != handle) continue;
      chunks[i].handle = -1;
      if (i + 1 < chunks.size() && chunks[i + 1].handle < 0) {
        chunks[i].size += chunks[i + 1].size;
        chunks.erase(chunks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
      if (i > 0 && chunks[i - 1].handle < 0) {
        chunks[i - 1].size += chunks[i].size;
        chunks.erase(chunks.begin() + static_cast<std::ptrdiff_t>(i));
      }
      return observe();
    }
  }
}

}  // namespace stowage
