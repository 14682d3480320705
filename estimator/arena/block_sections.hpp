// The sections of an arena problem's time, and which blocks are live in each.
//
// A section stands for a step whose live set is not contained in a neighbour's: a packing that is
// valid in the sections is valid at every step. Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/arena/arena_blocks.hpp"
#include "estimator/arena/bit_table.hpp"

namespace stowage {

struct BlockSections {
  std::int32_t count = 0;
  std::vector<std::vector<StepRange>> of_block;  ///< by block: ranges of sections, ascending
  BitTable blocks;                               ///< by section: the blocks that are live in it
};

/// Memory: one bit for each section and block.
[[nodiscard]] BlockSections make_sections(const ArenaBlocks& blocks);

/// By block: the other blocks that are live together with it at some step. Memory: one bit for each
/// pair.
[[nodiscard]] BitTable make_overlaps(const ArenaBlocks& blocks);

}  // namespace stowage
