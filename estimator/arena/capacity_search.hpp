// The search for the least capacity that has a packing, by tree searches (packing_tree.hpp). Each
// capacity is tried with several rankings in turn, since which of them is fast differs a
// thousandfold from problem to problem. Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/arena/arena_blocks.hpp"
#include "estimator/arena/block_sections.hpp"
#include "estimator/arena/packing_tree.hpp"

namespace stowage {

struct RankingSearch {
  TreeOutcome outcome = TreeOutcome::out_of_work;
  BlockOffsets packing;  ///< if one was found
};

/// Runs one tree search per ranking at one capacity, each in turn for a slice of the work, until
/// one of them ends or `work` is spent. Subtracts the work done from `work`. Deterministic.
[[nodiscard]] RankingSearch search_rankings_in_turn(const ArenaBlocks& blocks,
                                                    const BlockSections& sections,
                                                    const BitTable& overlaps, std::int64_t capacity,
                                                    std::int64_t& work);

struct TreePacking {
  BlockOffsets best;        ///< the packing given, or a better one
  std::int64_t lowest = 0;  ///< no packing has a smaller peak than this
  std::int64_t work = 0;    ///< that was done
};

/// Tries capacities from `target_peak` (at least the lower bound) upwards, until one has a packing,
/// the peak of `best` is reached, or about `work` is spent. The first capacity gets three tenths of
/// the work and each other one a tenth, but at least enough for each ranking to reach a leaf once.
/// If every capacity tried was decided, the least one is then found by bisection.
[[nodiscard]] TreePacking search_trees(const ArenaBlocks& blocks, const BitTable& overlaps,
                                       std::int64_t target_peak, std::int64_t work,
                                       BlockOffsets best);

}  // namespace stowage
