// How pack_arena finds its offsets: first fit in some order, and a search over the orders.
//
// Any packing, read in the order of its offsets, is one that first fit gives or betters, so the
// search needs only orders. Internal to estimator/arena/arena.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/arena/arena.hpp"

namespace stowage {

/// The blocks left to place: sizes are rounded and positive, times compressed.
struct ArenaBlocks {
  std::vector<std::int64_t> size;
  std::vector<std::vector<StepRange>> live;
  std::int32_t steps = 0;
  std::int64_t lower_bound = 0;

  [[nodiscard]] std::size_t count() const { return size.size(); }
};

/// What is live at each of the blocks' steps.
[[nodiscard]] std::vector<Bytes> live_bytes(const ArenaBlocks& blocks);

struct BlockOffsets {
  std::vector<std::int64_t> offset;
  std::int64_t peak = 0;
};

/// Greedy orders, then tree search at rising capacities (arena_tree.hpp), then iterated
/// re-insertion of what makes the peak: until the peak is at most `enough` (or the lower bound, if
/// that is larger) or `work` block comparisons are spent. Memory: count()^2 bits.
[[nodiscard]] BlockOffsets search_packing(const ArenaBlocks& blocks, std::int64_t enough,
                                          std::int64_t work);

/// One sweep over time, best fit among the free spans: O(n log n), for very many blocks.
[[nodiscard]] BlockOffsets sweep_packing(const ArenaBlocks& blocks);

}  // namespace stowage
