// The orders that first fit tries first: blocks sorted by how hard they are to place, judged by
// size and lifetime. Internal to estimator/arena.
#pragma once

#include <vector>

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

/// The order that packs best most often comes first.
[[nodiscard]] std::vector<BlockOrder> greedy_orders(const ArenaBlocks& blocks);

}  // namespace stowage
