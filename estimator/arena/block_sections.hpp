// The time of an arena problem cut into sections, and which blocks meet in them.
//
// A section stands for a step whose live set lies in no neighbour's: a packing that is right at the
// sections is right at every step. Internal to estimator/arena.
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

/// Memory: a bit for each section and block.
[[nodiscard]] BlockSections make_sections(const ArenaBlocks& blocks);

/// By block: the others that are ever live together with it. Memory: a bit a pair.
[[nodiscard]] BitTable make_overlaps(const ArenaBlocks& blocks);

}  // namespace stowage
