// One sweep over time, best fit among the free spans: O(n log n), for very many blocks.
// Internal to estimator/arena.
#pragma once

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

[[nodiscard]] BlockOffsets sweep_packing(const ArenaBlocks& blocks);

}  // namespace stowage
