// Rankings: the order in which a tree search tries blocks that can lie at the same height. Blocks
// that are likely to be hard to place come first. Internal to estimator/arena.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "estimator/arena/block_sections.hpp"

namespace stowage {

enum class RankBy {
  fullest,   ///< largest sum of unplaced bytes in any section of the block
  duration,  ///< in steps
  area,      ///< size times duration
};

/// The first criterion that differs decides, larger values first; then the lower index.
using Ranking = std::array<RankBy, 3>;

/// The rankings that are searched in turn; the one that is most often the fastest comes first.
inline constexpr std::array<Ranking, 3> search_rankings{
    Ranking{RankBy::fullest, RankBy::duration, RankBy::area},
    Ranking{RankBy::fullest, RankBy::area, RankBy::duration},
    Ranking{RankBy::duration, RankBy::area, RankBy::fullest},
};

/// Sorts `chosen`, indices of blocks. `unplaced`: by section, the bytes of unplaced blocks.
void sort_by_rank(std::span<std::int32_t> chosen, const Ranking& ranking, const ArenaBlocks& blocks,
                  const BlockSections& sections, const std::vector<std::int64_t>& unplaced);

}  // namespace stowage
