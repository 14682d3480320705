// Tree search for a packing within a capacity: blocks are placed from the bottom up, each on what
// lies beneath it, and a branch is left as soon as some step can no longer hold what is still to
// come. After MiniMalloc (Moffitt, ASPLOS 2024). Internal to estimator/arena/arena_search.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/arena/arena_search.hpp"

namespace stowage {

/// The blocks by section (a step whose live set lies in no neighbour's), and which overlap.
struct BlockSections {
  std::vector<std::vector<std::int32_t>> of_block;     ///< sections, ascending
  std::vector<std::vector<std::int32_t>> blocks;       ///< by section
  std::vector<std::vector<std::int32_t>> overlapping;  ///< by block: the others it may not overlap
};
[[nodiscard]] BlockSections make_sections(const ArenaBlocks& blocks);

/// Offsets within `capacity`, or nullopt: there are none, or `work` was spent. Of blocks at the
/// same height the one earlier in `preference` (a permutation) is tried first. `work` is reduced by
/// what was spent.
[[nodiscard]] std::optional<BlockOffsets> tree_packing(const ArenaBlocks& blocks,
                                                       const BlockSections& sections,
                                                       std::int64_t capacity,
                                                       const std::vector<std::int32_t>& preference,
                                                       std::int64_t& work);

}  // namespace stowage
