#include <algorithm>

#include "tests/estimator/allocator/naive_caching_allocator.hpp"

namespace stowage {

using naive::up;

/// Finds or makes a range of addresses that is large enough, then maps its pieces up to the size.
NaiveCachingAllocator::Place NaiveCachingAllocator::grow(const Request& request) {
  // Where: the lowest run of free and unmapped pieces that has an unmapped one, begins with it or
  // with the free piece before it, and is large enough.
  std::size_t in = SIZE_MAX;
  std::size_t first = 0;
  for (std::size_t s = 0; s < segments_.size() && in == SIZE_MAX; ++s) {
    const Segment& segment = segments_[s];
    if (!segment.expandable || segment.small != request.small || segment.stream != request.stream) {
      continue;
    }
    const auto open = [&](std::size_t p) {
      return segment.pieces[p].state == State::free || segment.pieces[p].state == State::unmapped;
    };
    for (std::size_t p = 0; p < segment.pieces.size() && in == SIZE_MAX; ++p) {
      if (segment.pieces[p].state != State::unmapped) continue;
      const std::size_t begin = p > 0 && open(p - 1) ? p - 1 : p;
      std::int64_t room = 0;
      for (std::size_t q = begin; q < segment.pieces.size() && open(q); ++q) {
        room += segment.pieces[q].size;
      }
      if (room >= request.size) {
        in = s;
        first = begin;
      }
    }
  }
  if (in == SIZE_MAX) {
    Segment segment;
    segment.address = next_address_;
    segment.small = request.small;
    segment.expandable = true;
    segment.stream = request.stream;
    segment.pieces.resize(1);
    segment.pieces[0].size = up(total_ + total_ / 8, page(request.small));
    segment.pieces[0].state = State::unmapped;
    next_address_ += up(segment.pieces[0].size, 2 * naive::mib);
    segments_.push_back(segment);
    in = segments_.size() - 1;
    first = 0;
  }
  auto& pieces = segments_[in].pieces;
  if (pieces[first].state == State::unmapped &&
      !map_at(in, first, std::min(pieces[first].size, request.size))) {
    return nowhere();
  }
  while (pieces[first].size < request.size) {
    const std::int64_t missing = request.size - pieces[first].size;
    if (!map_at(in, first + 1, std::min(pieces[first + 1].size, missing))) return nowhere();
  }
  return {in, first};
}

bool NaiveCachingAllocator::map_at(std::size_t s, std::size_t p, std::int64_t bytes) {
  Segment& segment = segments_[s];
  const std::int64_t mapped = up(bytes, page(segment.small));
  if (mapped > device_free()) return false;
  if (mapped < segment.pieces[p].size) {
    Piece rest;
    rest.size = segment.pieces[p].size - mapped;
    rest.state = State::unmapped;
    segment.pieces[p].size = mapped;
    segment.pieces.insert(segment.pieces.begin() + static_cast<std::ptrdiff_t>(p) + 1, rest);
  }
  segment.pieces[p].state = State::free;
  merge_around(segment, p);
  ++statistics_.device_allocations;
  observe();
  return true;
}

void NaiveCachingAllocator::unmap_at(std::size_t s, std::int64_t begin, std::int64_t end) {
  Segment& segment = segments_[s];
  std::int64_t offset = 0;
  std::size_t p = 0;
  while (offset + segment.pieces[p].size < end) offset += segment.pieces[p++].size;
  Piece before = segment.pieces[p], middle, after = segment.pieces[p];
  before.size = begin - offset;
  middle.size = end - begin;
  middle.state = State::unmapped;
  after.size = offset + segment.pieces[p].size - end;
  before.free_since = after.free_since = searches_[segment.small ? 1 : 0];
  auto& pieces = segment.pieces;
  const auto index = static_cast<std::ptrdiff_t>(p);
  pieces[p] = middle;
  if (after.size > 0) pieces.insert(pieces.begin() + index + 1, after);
  if (before.size > 0) pieces.insert(pieces.begin() + index, before);
  merge_around(segment, before.size > 0 ? p + 1 : p);
  ++statistics_.device_releases;
}

}  // namespace stowage
