// Tree searches (packing_tree.hpp) for the least capacity, each capacity tried with several
// rankings by turns: which of them is quick differs a thousandfold from problem to problem.
// Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/arena/arena_blocks.hpp"
#include "estimator/arena/block_sections.hpp"
#include "estimator/arena/packing_tree.hpp"

namespace stowage {

struct RaceResult {
  TreeOutcome outcome = TreeOutcome::out_of_work;
  BlockOffsets packing;  ///< if one was found
};

/// All rankings at one capacity, a slice of work each by turns, until one search ends or `work` is
/// spent. `work` is reduced by what was spent. Deterministic.
[[nodiscard]] RaceResult race_trees(const ArenaBlocks& blocks, const BlockSections& sections,
                                    const BitTable& overlaps, std::int64_t capacity,
                                    std::int64_t& work);

struct TreePacking {
  BlockOffsets best;        ///< the packing given, or a better one
  std::int64_t lowest = 0;  ///< no packing has a smaller peak than this
};

/// Capacities from `enough` (at least the lower bound) upwards until one is met, they reach what is
/// known already, or about `work` is spent: three tenths of it at the first, a tenth at each other,
/// but not less than lets each ranking try once. Where all below it are known to be too small, the
/// capacity that was met is then narrowed down.
[[nodiscard]] TreePacking search_trees(const ArenaBlocks& blocks, const BitTable& overlaps,
                                       std::int64_t enough, std::int64_t work, BlockOffsets best);

}  // namespace stowage
