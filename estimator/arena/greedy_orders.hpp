// The orders in which first fit is tried first: how hard a block is to place, by its size and the
// length of its life. Internal to estimator/arena.
#pragma once

#include <vector>

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

/// The order that packs best most often comes first.
[[nodiscard]] std::vector<BlockOrder> greedy_orders(const ArenaBlocks& blocks);

}  // namespace stowage
