#include "tests/estimator/allocator/naive_caching_allocator.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

namespace {

using naive::mib;
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;

using naive::up;

/// Section "rounding" of the rules, with the table's index found by counting.
std::int64_t round(std::int64_t size, const RoundupDivisions& table) {
  if (size < 512) return 512;
  std::size_t index = 0;
  while (index < 15 && (std::int64_t{2} * mib << index) <= size) ++index;
  const std::int64_t divisions = table[index];
  if (divisions > 1 && size > 512 * divisions) {
    std::int64_t power = 1;
    while (power * 2 <= size) power *= 2;
    if (power == size) return size;
    for (std::int64_t i = 1; i <= divisions; ++i) {
      const std::int64_t step = power + power / divisions * i;
      if (step >= size) return step;
    }
  }
  return up(size, 512);
}

}  // namespace

NaiveCachingAllocator::NaiveCachingAllocator(const AllocatorSettings& settings, Bytes total,
                                             Bytes in_use)
    : settings_(settings), total_(total.count()), in_use_(in_use.count()) {}

std::int64_t NaiveCachingAllocator::limit() const {
  if (!settings_.memory_fraction || *settings_.memory_fraction >= 1) return unlimited;
  return static_cast<std::int64_t>(*settings_.memory_fraction * static_cast<double>(total_));
}

std::int64_t NaiveCachingAllocator::split_limit() const {
  return settings_.max_split_size ? settings_.max_split_size->count() : unlimited;
}

std::int64_t NaiveCachingAllocator::page(bool small) const {
  return small ? 2 * mib : settings_.large_segment.count();
}

std::int64_t NaiveCachingAllocator::reserved() const {
  std::int64_t sum = 0;
  for (const Segment& segment : segments_) {
    for (const Piece& piece : segment.pieces) {
      if (piece.state != State::unmapped) sum += piece.size;
    }
  }
  return sum;
}

std::int64_t NaiveCachingAllocator::device_free() const {
  // All segments and pages of the settings tested are multiples of 2 MiB.
  return total_ - in_use_ - reserved();
}

void NaiveCachingAllocator::observe() {
  std::int64_t allocated = 0, requested = 0, active = 0, inactive = 0, count = 0;
  for (const Segment& segment : segments_) {
    if (!segment.expandable) ++count;
    for (const Piece& piece : segment.pieces) {
      if (piece.state == State::used) allocated += piece.size;
      if (piece.state == State::used || piece.state == State::waiting) {
        active += piece.size;
        requested += piece.requested;
      }
      if (piece.state == State::free && !segment.expandable && segment.pieces.size() > 1) {
        inactive += piece.size;
      }
    }
  }
  const auto follow = [](auto& level, auto now) {
    level.current = now;
    level.peak = std::max(level.peak, now);
  };
  follow(statistics_.allocated, Bytes(allocated));
  follow(statistics_.requested, Bytes(requested));
  follow(statistics_.active, Bytes(active));
  follow(statistics_.reserved, Bytes(reserved()));
  follow(statistics_.inactive_split, Bytes(inactive));
  follow(statistics_.segments, count);
}

NaiveCachingAllocator::Place NaiveCachingAllocator::find(int handle) const {
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    for (std::size_t p = 0; p < segments_[s].pieces.size(); ++p) {
      if (segments_[s].pieces[p].handle == handle) return {s, p};
    }
  }
  return nowhere();
}

/// The rules of the caching allocator, one after the other: round, search, collect, ask the driver,
/// release the cache, then split the piece that was found.
int NaiveCachingAllocator::allocate(Bytes bytes, StreamId stream) {
  look_at_events();
  const std::int64_t size = round(bytes.count(), settings_.roundup_power2_divisions);
  const std::int64_t segment = size <= mib       ? 2 * mib
                               : size < 10 * mib ? settings_.large_segment.count()
                                                 : up(size, 2 * mib);
  const Request request{bytes.count(), size, segment, stream, size <= mib};
  const bool collecting = settings_.garbage_collection_threshold > 0 && limit() != unlimited;
  if (collecting) ++searches_[request.small ? 1 : 0];
  Place place = best_fit(request);
  bool refused = false;
  if (place.none()) {
    if (collecting) collect();
    place = new_memory(request, refused);
    if (place.none() && refused) {
      ++statistics_.early_refusals;
    } else if (place.none()) {
      if (release_available(request)) place = new_memory(request, refused);
      if (place.none()) {
        release_everything();
        ++statistics_.alloc_retries;
        place = new_memory(request, refused);
      }
      if (place.none()) ++statistics_.ooms;
    }
  }
  if (place.none()) {
    last_failure_ = {bytes,
                     Bytes(segment),
                     Bytes(total_),
                     Bytes(device_free()),
                     Bytes(reserved()),
                     limit() == unlimited ? std::nullopt : std::optional(Bytes(limit())),
                     statistics_.allocated.current,
                     statistics_.reserved.current,
                     refused};
    return -1;
  }
  const std::int64_t rest = at(place).size - size;
  const bool split = request.small || settings_.expandable_segments
                         ? rest >= 512
                         : size < split_limit() && rest > mib;
  if (split) {
    Piece upper;
    upper.size = rest;
    upper.free_since = searches_[request.small ? 1 : 0];
    at(place).size = size;
    auto& pieces = segments_[place.segment].pieces;
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(place.piece) + 1, upper);
  }
  at(place).state = State::used;
  at(place).requested = bytes.count();
  at(place).handle = next_handle_;
  observe();
  return next_handle_++;
}

NaiveCachingAllocator::Place NaiveCachingAllocator::best_fit(const Request& request) {
  std::vector<Place> candidates;  // large enough, in the order of size, then address
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const Segment& segment = segments_[s];
    if (segment.small != request.small || segment.stream != request.stream) continue;
    for (std::size_t p = 0; p < segment.pieces.size(); ++p) {
      const Piece& piece = segment.pieces[p];
      if (piece.state == State::free && piece.size >= request.size) candidates.push_back({s, p});
    }
  }
  if (candidates.empty()) return nowhere();
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](Place a, Place b) { return at(a).size < at(b).size; });
  std::size_t chosen = 0;
  if (settings_.expandable_segments) {
    const auto room = [&](Place place) {
      const auto& pieces = segments_[place.segment].pieces;
      const bool grows =
          place.piece + 1 < pieces.size() && pieces[place.piece + 1].state == State::unmapped;
      return at(place).size + (grows ? pieces[place.piece + 1].size : 0);
    };
    while (chosen + 1 < candidates.size() &&
           room(candidates[chosen + 1]) < room(candidates[chosen])) {
      ++chosen;
    }
  }
  const std::int64_t size = at(candidates[chosen]).size;
  const std::int64_t whole = split_limit();
  if (request.size < whole && size >= whole) return nowhere();
  if (request.size >= whole && size >= request.size + settings_.max_non_split_rounding.count()) {
    return nowhere();
  }
  return candidates[chosen];
}

NaiveCachingAllocator::Place NaiveCachingAllocator::new_memory(const Request& request,
                                                               bool& refused) {
  if (reserved() + request.segment > limit()) return nowhere();
  if (settings_.refuse_early && limit() == unlimited && reserved() + request.segment > total_) {
    refused = true;
    return nowhere();
  }
  if (settings_.expandable_segments) return grow(request);
  if (request.segment > device_free()) return nowhere();
  Segment segment;
  segment.address = next_address_;
  next_address_ += request.segment;
  segment.small = request.small;
  segment.stream = request.stream;
  segment.pieces.resize(1);
  segment.pieces[0].size = request.segment;
  segments_.push_back(segment);
  ++statistics_.device_allocations;
  observe();
  return {segments_.size() - 1, 0};
}

/// Joins equal neighbours of the piece: free with free, unmapped with unmapped.
void NaiveCachingAllocator::merge_around(Segment& segment, std::size_t p) {
  auto& pieces = segment.pieces;
  const State state = pieces[p].state;
  pieces[p].free_since = searches_[segment.small ? 1 : 0];
  if (p + 1 < pieces.size() && pieces[p + 1].state == state) {
    pieces[p].size += pieces[p + 1].size;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(p) + 1);
  }
  if (p > 0 && pieces[p - 1].state == state) {
    pieces[p].size += pieces[p - 1].size;
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(p) - 1);
  }
}

void NaiveCachingAllocator::set_free(Place place) {
  Piece& piece = at(place);
  piece.state = State::free;
  piece.requested = 0;
  piece.handle = -1;
  piece.users.clear();
  piece.events.clear();
  merge_around(segments_[place.segment], place.piece);
  observe();
}

void NaiveCachingAllocator::free(int handle) {
  const Place place = find(handle);
  Piece& piece = at(place);
  if (piece.users.empty()) return set_free(place);
  piece.state = State::waiting;
  piece.freed = frees_++;
  for (const StreamId stream : piece.users) piece.events.emplace_back(stream, false);
  piece.users.clear();
  observe();
}

void NaiveCachingAllocator::record_stream(int handle, StreamId stream) {
  const Place place = find(handle);
  if (segments_[place.segment].stream != stream) at(place).users.insert(stream);
}

void NaiveCachingAllocator::complete_events(StreamId stream) {
  for (Segment& segment : segments_) {
    for (Piece& piece : segment.pieces) {
      for (auto& [on, done] : piece.events) done = done || on == stream;
    }
  }
}

/// Stream by stream, in the order of the frees, which decides how high the inactive bytes go on the
/// way. The last event to be looked at frees the piece.
void NaiveCachingAllocator::look_at_events() {
  for (int stream = 0; stream < 8; ++stream) {
    while (look_at_event_of(StreamId{stream})) {
    }
  }
}

bool NaiveCachingAllocator::look_at_event_of(StreamId stream) {
  Place oldest = nowhere();
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    for (std::size_t p = 0; p < segments_[s].pieces.size(); ++p) {
      const Piece& piece = segments_[s].pieces[p];
      const bool done =
          std::count(piece.events.begin(), piece.events.end(), std::pair(stream, true)) > 0;
      if (done && (oldest.none() || piece.freed < at(oldest).freed)) oldest = {s, p};
    }
  }
  if (oldest.none()) return false;
  auto& events = at(oldest).events;
  events.erase(std::find(events.begin(), events.end(), std::pair(stream, true)));
  if (events.empty()) set_free(oldest);
  return true;
}

bool NaiveCachingAllocator::release_available(const Request& request) {
  if (!settings_.max_split_size || settings_.expandable_segments) return false;
  const std::int64_t wanted = std::max(request.size, split_limit());
  // Whole free segments of the stream that are too large to split, smallest first.
  const auto oversize = [&] {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;  // size, address
    for (const Segment& segment : segments_) {
      if (segment.small == request.small && segment.stream == request.stream &&
          segment.pieces.size() == 1 && segment.pieces[0].state == State::free &&
          segment.pieces[0].size >= split_limit()) {
        found.emplace_back(segment.pieces[0].size, segment.address);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  const auto drop = [&](std::int64_t address) {
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (segments_[s].address == address) return release_segment(s);
    }
  };
  const auto found = oversize();
  for (const auto& [size, address] : found) {
    if (size >= wanted) {
      drop(address);
      return true;
    }
  }
  std::int64_t sum = 0;
  for (auto it = found.rbegin(); it != found.rend() && sum < wanted; ++it) {
    sum += it->first;
    drop(it->second);
  }
  return sum >= wanted;
}

void NaiveCachingAllocator::empty_cache() { release_everything(); }

void NaiveCachingAllocator::release_everything() {
  ++statistics_.stream_synchronizations;
  for (Segment& segment : segments_) {
    for (Piece& piece : segment.pieces) {
      for (auto& event : piece.events) event.second = true;
    }
  }
  look_at_events();
  for (std::size_t s = segments_.size(); s-- > 0;) {
    Segment& segment = segments_[s];
    if (!segment.expandable) {
      if (segment.pieces.size() == 1 && segment.pieces[0].state == State::free) release_segment(s);
      continue;
    }
    // Pages in whole within a free piece, one piece after the other: unmapping moves the others.
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    std::int64_t offset = 0;
    const std::int64_t size = page(segment.small);
    for (const Piece& piece : segment.pieces) {
      const std::int64_t begin = up(offset, size);
      offset += piece.size;
      const std::int64_t end = offset / size * size;
      if (piece.state == State::free && begin < end) ranges.emplace_back(begin, end);
    }
    for (const auto& [begin, end] : ranges) unmap_at(s, begin, end);
    if (segment.pieces.size() == 1 && segment.pieces[0].state == State::unmapped &&
        !ranges.empty()) {
      segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(s));
    }
  }
  observe();
}

void NaiveCachingAllocator::release_segment(std::size_t s) {
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(s));
  ++statistics_.device_releases;
  observe();
}

void NaiveCachingAllocator::collect() {
  const auto threshold = static_cast<std::int64_t>(settings_.garbage_collection_threshold *
                                                   static_cast<double>(limit()));
  if (reserved() <= threshold) return;
  const std::int64_t excess = reserved() - threshold;
  std::int64_t reclaimed = 0;
  const auto candidate = [&](const Segment& segment) {
    return !segment.small && !segment.expandable && segment.pieces.size() == 1 &&
           segment.pieces[0].state == State::free;
  };
  for (bool freed = true; freed && reclaimed < excess;) {
    freed = false;
    double sum = 0, count = 0;
    for (const Segment& segment : segments_) {
      if (!candidate(segment)) continue;
      sum += static_cast<double>(searches_[0] - segment.pieces[0].free_since);
      ++count;
    }
    if (count == 0) return;
    const double mean = sum / count;
    for (std::size_t s = segments_.size(); s-- > 0;) {
      if (!candidate(segments_[s])) continue;
      const Piece& piece = segments_[s].pieces[0];
      if (static_cast<double>(searches_[0] - piece.free_since) < mean) continue;
      reclaimed += piece.size;
      release_segment(s);
      freed = true;
    }
    if (freed) ++collections_;
  }
}

std::vector<SegmentSnapshot> NaiveCachingAllocator::snapshot() const {
  std::vector<SegmentSnapshot> result;
  for (const Segment& segment : segments_) {
    std::int64_t address = segment.address;
    bool mapped_before = false;
    for (const Piece& piece : segment.pieces) {
      const bool mapped = piece.state != State::unmapped;
      if (mapped && !mapped_before) {
        const BlockPool pool = segment.small ? BlockPool::small : BlockPool::large;
        result.push_back({address, {}, segment.stream, pool, segment.expandable, {}});
      }
      if (mapped) {
        const BlockState state = piece.state == State::used      ? BlockState::allocated
                                 : piece.state == State::waiting ? BlockState::awaiting_free
                                                                 : BlockState::inactive;
        result.back().reserved += Bytes(piece.size);
        result.back().blocks.push_back({address, Bytes(piece.size), Bytes(piece.requested), state});
      }
      mapped_before = mapped;
      address += piece.size;
    }
  }
  return result;
}

}  // namespace stowage
