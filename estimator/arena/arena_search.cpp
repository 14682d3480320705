#include "estimator/arena/arena_search.hpp"

#include <algorithm>
#include <limits>

#include "estimator/arena/block_sections.hpp"
#include "estimator/arena/capacity_search.hpp"
#include "estimator/arena/first_fit.hpp"
#include "estimator/arena/reinsertion.hpp"

namespace stowage {

SearchedPacking search_packing(const ArenaBlocks& blocks, std::span<const BlockOrder> orders,
                               std::int64_t target_peak, std::int64_t work) {
  if (blocks.count() == 0) return {};
  target_peak = std::max(target_peak, blocks.lower_bound);
  const BitTable overlaps = make_overlaps(blocks);
  FirstFit fit(blocks, overlaps);
  BlockOffsets best{{}, std::numeric_limits<std::int64_t>::max()};
  for (const BlockOrder& order : orders) {
    const std::int64_t peak = fit.pack(order, best.peak - 1);
    if (peak < best.peak) best = {fit.offsets(), peak};
    if (best.peak <= target_peak) return {std::move(best), fit.work()};
  }
  if (work <= 0) return {std::move(best), fit.work()};
  TreePacking packed = search_trees(blocks, overlaps, target_peak, work, std::move(best));
  target_peak = std::max(target_peak, packed.lowest);
  if (packed.best.peak > target_peak) {
    packed.best = reinsert_blocks(blocks, fit, std::move(packed.best), target_peak, work / 2);
  }
  return {std::move(packed.best), fit.work() + packed.work};
}

}  // namespace stowage
