// The order in which a tree search tries blocks that can lie at the same height: what is likely to
// be hard to place comes first. Internal to estimator/arena.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "estimator/arena/block_sections.hpp"

namespace stowage {

enum class RankBy {
  fullest,   ///< the largest sum, among the block's sections, of what is not placed yet
  duration,  ///< in steps
  area,      ///< size times duration
};

/// The first that differs decides, larger values first; then the lower index.
using Ranking = std::array<RankBy, 3>;

/// The rankings that a race runs, the one that wins most often first.
inline constexpr std::array<Ranking, 3> race_rankings{
    Ranking{RankBy::fullest, RankBy::duration, RankBy::area},
    Ranking{RankBy::fullest, RankBy::area, RankBy::duration},
    Ranking{RankBy::duration, RankBy::area, RankBy::fullest},
};

/// Sorts `chosen`, indices of blocks. `unplaced`: by section, the bytes of blocks not placed yet.
void sort_by_rank(std::span<std::int32_t> chosen, const Ranking& ranking, const ArenaBlocks& blocks,
                  const BlockSections& sections, const std::vector<std::int64_t>& unplaced);

}  // namespace stowage
