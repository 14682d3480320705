// A second CachingAllocator for the random traces: the rules written down again, with vectors and
// linear searches, every figure counted anew from the pieces after each change. It shares no code
// with the first but the settings, the statistics and the snapshot's types.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "estimator/allocator/caching_allocator.hpp"

namespace stowage {

namespace naive {
inline constexpr std::int64_t mib = 1 << 20;
inline std::int64_t up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
}  // namespace naive

class NaiveCachingAllocator {
 public:
  NaiveCachingAllocator(const AllocatorSettings& settings, Bytes total, Bytes in_use);

  /// A handle of its own; -1: refused, `last_failure` says why.
  int allocate(Bytes bytes, StreamId stream);
  void free(int handle);
  void record_stream(int handle, StreamId stream);
  void complete_events(StreamId stream);
  void empty_cache();
  void reset_peaks() { statistics_.reset_peaks(); }

  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }
  [[nodiscard]] const OutOfMemory& last_failure() const { return last_failure_; }
  [[nodiscard]] std::vector<SegmentSnapshot> snapshot() const;
  [[nodiscard]] int collections() const { return collections_; }  ///< that released something

 private:
  enum class State { free, used, waiting, unmapped };
  struct Piece {
    std::int64_t size = 0;
    State state = State::free;
    std::int64_t requested = 0;
    int handle = -1;
    std::set<StreamId> users;                       ///< while used
    std::vector<std::pair<StreamId, bool>> events;  ///< while waiting: stream, done
    int freed = 0;                                  ///< while waiting: the number of its free
    std::int64_t free_since = 0;
  };
  struct Segment {
    std::int64_t address = 0;
    bool small = false;
    bool expandable = false;
    StreamId stream;
    std::vector<Piece> pieces;
  };
  struct Place {
    std::size_t segment = 0, piece = 0;
    [[nodiscard]] bool none() const { return segment == SIZE_MAX; }
  };
  static constexpr Place nowhere() { return {SIZE_MAX, 0}; }
  struct Request {
    std::int64_t asked, size, segment;
    StreamId stream;
    bool small;
  };

  Piece& at(Place place) { return segments_[place.segment].pieces[place.piece]; }
  Place find(int handle) const;
  Place best_fit(const Request& request);
  Place new_memory(const Request& request, bool& refused);
  Place grow(const Request& request);
  bool map_at(std::size_t segment, std::size_t piece, std::int64_t bytes);
  void unmap_at(std::size_t segment, std::int64_t begin, std::int64_t end);
  void set_free(Place place);
  void merge_around(Segment& segment, std::size_t piece);
  bool release_available(const Request& request);
  void release_everything();
  void release_segment(std::size_t segment);
  void collect();
  void look_at_events();
  bool look_at_event_of(StreamId stream);
  void observe();

  [[nodiscard]] std::int64_t limit() const;
  [[nodiscard]] std::int64_t split_limit() const;
  [[nodiscard]] std::int64_t page(bool small) const;
  [[nodiscard]] std::int64_t reserved() const;
  [[nodiscard]] std::int64_t device_free() const;

  AllocatorSettings settings_;
  std::int64_t total_, in_use_;
  std::vector<Segment> segments_;  ///< by age, so by address
  std::int64_t next_address_ = 0;
  std::int64_t searches_[2] = {0, 0};
  int next_handle_ = 0, frees_ = 0;
  int collections_ = 0;
  AllocatorStatistics statistics_;
  OutOfMemory last_failure_;
};

}  // namespace stowage
