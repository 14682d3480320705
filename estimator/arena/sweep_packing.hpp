// Packing by one sweep over time, with best fit among the free address ranges: O(n log n), for very
// many blocks. Internal to estimator/arena.
#pragma once

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

[[nodiscard]] BlockOffsets sweep_packing(const ArenaBlocks& blocks);

}  // namespace stowage
