// What no packing can do, though every live sum is small enough.
//
// Blocks that are live together lie apart. So of any three steps, all blocks that are live at two
// of them or at all three lie apart: two such blocks share a step. Their sum is a bound on the
// peak. Of blocks with one range each it is no more than the sum at the middle step; but a block
// that leaves and returns to its place (a parameter that stays over the step's end) holds that
// place open in between against all that is live on both sides. Internal to estimator/arena.
#pragma once

#include <array>
#include <vector>

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

struct PlaceConflict {
  std::int64_t least_peak = 0;  ///< of any packing: the largest sum of any three steps tried
  /// By step, for the first, the second and the third of three steps: by how much the sum of three
  /// exceeds the sum of what is live there, at most, where the former is above the peak asked for.
  /// That much less would have to be live for a packing within that peak, the other two steps being
  /// what they are. Empty: no three steps do.
  std::array<std::vector<std::int64_t>, 3> held;
};

/// Tries the steps around the ranges that blocks are away, some of them where there are very many.
/// O(blocks + steps) for each pair of those. No block returns: nothing is tried.
[[nodiscard]] PlaceConflict find_conflict(const ArenaBlocks& blocks, std::int64_t peak);

}  // namespace stowage
