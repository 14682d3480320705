// pack_arena's search for up to some thousands of blocks: greedy orders, then complete search at
// rising capacities, then local search. Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <span>

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

struct SearchedPacking {
  BlockOffsets placed;
  std::int64_t work = 0;  ///< block comparisons that were made
};

/// Tries the given orders (first_fit.hpp), then tree search (capacity_search.hpp), then
/// re-insertion (reinsertion.hpp). Stops when the peak is at most `target_peak` or the lower bound,
/// when it is known to be the least, or when about `work` block comparisons are spent. Memory:
/// count()^2 bits.
[[nodiscard]] SearchedPacking search_packing(const ArenaBlocks& blocks,
                                             std::span<const BlockOrder> orders,
                                             std::int64_t target_peak, std::int64_t work);

}  // namespace stowage
