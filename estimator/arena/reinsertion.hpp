// Iterated re-insertion: take a block that makes the peak, or one beneath it, and place it earlier.
// Internal to estimator/arena.
#pragma once

#include <cstdint>

#include "estimator/arena/first_fit.hpp"

namespace stowage {

/// Betters `start` until its peak is at most `enough` or `work` block comparisons are spent.
/// Deterministic.
[[nodiscard]] BlockOffsets reinsert_blocks(const ArenaBlocks& blocks, FirstFit& fit,
                                           BlockOffsets start, std::int64_t enough,
                                           std::int64_t work);

}  // namespace stowage
