#include "estimator/arena/arena_search.hpp"

#include <algorithm>
#include <limits>

#include "estimator/arena/block_sections.hpp"
#include "estimator/arena/first_fit.hpp"
#include "estimator/arena/reinsertion.hpp"
#include "estimator/arena/tree_race.hpp"

namespace stowage {

BlockOffsets search_packing(const ArenaBlocks& blocks, std::span<const BlockOrder> orders,
                            std::int64_t enough, std::int64_t work) {
  if (blocks.count() == 0) return {};
  enough = std::max(enough, blocks.lower_bound);
  const BitTable overlaps = make_overlaps(blocks);
  FirstFit fit(blocks, overlaps);
  BlockOffsets best{{}, std::numeric_limits<std::int64_t>::max()};
  for (const BlockOrder& order : orders) {
    const std::int64_t peak = fit.pack(order, best.peak - 1);
    if (peak < best.peak) best = {fit.offsets(), peak};
    if (best.peak <= enough) return best;
  }
  if (work <= 0) return best;
  TreePacking packed = search_trees(blocks, overlaps, enough, work, std::move(best));
  enough = std::max(enough, packed.lowest);
  if (packed.best.peak <= enough) return std::move(packed.best);
  return reinsert_blocks(blocks, fit, std::move(packed.best), enough, work / 2);
}

}  // namespace stowage
