// A bound on the peak of every packing that can be above the largest sum of live bytes.
//
// Blocks that are live at the same step cannot overlap in memory. Take any three steps: two blocks
// that are each live at two or three of them share a step, so all such blocks lie apart, and the
// sum of their sizes is a bound on the peak. If every block has one live range, this sum is no more
// than that of the middle step. But a block with two ranges at one offset (a parameter that stays
// across the step's end) keeps its place free in between, against all blocks that are live on both
// sides. Internal to estimator/arena.
#pragma once

#include <array>
#include <vector>

#include "estimator/arena/arena_blocks.hpp"

namespace stowage {

struct PlaceConflict {
  std::int64_t least_peak = 0;  ///< of any packing: the largest sum over the triples of steps tried
  /// For the first, second and third step of a triple, by step: the largest excess of a triple's
  /// sum over the bytes live at that step, among the triples whose sum exceeds `peak`. That many
  /// bytes less would have to be live there for a packing within `peak`, if nothing changes at the
  /// other two steps. Empty: no triple exceeds `peak`.
  std::array<std::vector<std::int64_t>, 3> excess;
};

/// Tries triples around the gaps between the ranges of blocks, and only some of them if there are
/// very many. O(blocks + steps) for each pair of steps tried. If all blocks have one range, nothing
/// is tried.
[[nodiscard]] PlaceConflict find_conflict(const ArenaBlocks& blocks, std::int64_t peak);

}  // namespace stowage
