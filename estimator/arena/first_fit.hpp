// FirstFit: places the blocks one by one in a given order, each at the lowest offset that is free
// for its whole lifetime.
//
// For any packing, first fit in the order of its offsets gives a peak that is no larger, so a
// search only needs to go over orders. Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/arena/arena_blocks.hpp"
#include "estimator/arena/bit_table.hpp"

namespace stowage {

/// Reuses its buffers from one order to the next. O(n^2) for an order of n blocks.
class FirstFit {
 public:
  /// Both must outlive it; `overlaps` is make_overlaps(blocks).
  FirstFit(const ArenaBlocks& blocks, const BitTable& overlaps);

  /// Returns the peak of the order, or some number above `limit` as soon as the peak is known to
  /// exceed it.
  [[nodiscard]] std::int64_t pack(const BlockOrder& order, std::int64_t limit);

  /// The offsets of the last order that was packed within its limit.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offset_; }
  /// Block comparisons so far.
  [[nodiscard]] std::int64_t work() const { return work_; }
  [[nodiscard]] bool overlap(std::int32_t a, std::int32_t b) const { return overlaps_.test(a, b); }

 private:
  struct Placed {
    std::int64_t begin, end;
    std::int32_t block;
  };

  [[nodiscard]] std::int64_t lowest_gap(std::int32_t block, std::int64_t size);

  const ArenaBlocks& blocks_;
  const BitTable& overlaps_;
  std::vector<Placed> placed_;  // ascending begin
  std::vector<std::int64_t> offset_;
  std::int64_t work_ = 0;
};

}  // namespace stowage
