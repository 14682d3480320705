// How pack_arena finds its offsets for up to some thousands of blocks: greedy orders, then complete
// search at rising capacities, then local search. Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <span>

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

/// The orders given (first_fit.hpp), then tree search (tree_race.hpp), then re-insertion
/// (reinsertion.hpp): until the peak is at most `enough` (or the lower bound, if that is larger),
/// is known to be the least, or about `work` block comparisons are spent. Memory: count()^2 bits.
[[nodiscard]] BlockOffsets search_packing(const ArenaBlocks& blocks,
                                          std::span<const BlockOrder> orders, std::int64_t enough,
                                          std::int64_t work);

}  // namespace stowage
