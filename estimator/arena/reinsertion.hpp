// Iterated re-insertion, a local search over orders: takes a block that reaches the peak, or one
// below it, and places it earlier. Internal to estimator/arena.
#pragma once

#include <cstdint>

#include "estimator/arena/first_fit.hpp"

namespace stowage {

/// Improves `start` until its peak is at most `target_peak` or `work` block comparisons are spent.
/// Deterministic.
[[nodiscard]] BlockOffsets reinsert_blocks(const ArenaBlocks& blocks, FirstFit& fit,
                                           BlockOffsets start, std::int64_t target_peak,
                                           std::int64_t work);

}  // namespace stowage
