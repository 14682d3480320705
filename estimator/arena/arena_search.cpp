#include "estimator/arena/arena_search.hpp"

#include <algorithm>
#include <limits>

#include "estimator/arena/block_sections.hpp"
#include "estimator/arena/first_fit.hpp"
#include "estimator/arena/reinsertion.hpp"
#include "estimator/arena/tree_race.hpp"

namespace stowage {
namespace {

std::vector<BlockOrder> greedy_orders(const ArenaBlocks& blocks) {
  const std::size_t n = blocks.count();
  // In the blocks' own steps: those at which nothing starts make no block harder to place.
  std::vector<std::int64_t> duration(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (const StepRange& range : blocks.live[i]) duration[i] += range.length();
  }
  const auto area = [&](std::size_t i) {
    return static_cast<double>(blocks.size[i]) * static_cast<double>(duration[i]);
  };
  const auto begin = [&](std::size_t i) { return blocks.live[i].front().begin; };
  return {
      descending_blocks(n, [&](std::size_t i) { return std::pair(blocks.size[i], duration[i]); }),
      descending_blocks(n, [&](std::size_t i) { return std::pair(area(i), blocks.size[i]); }),
      descending_blocks(n, [&](std::size_t i) { return std::pair(duration[i], blocks.size[i]); }),
      descending_blocks(n, [&](std::size_t i) { return std::pair(-begin(i), blocks.size[i]); }),
      descending_blocks(
          n, [&](std::size_t i) { return std::pair(blocks.live[i].back().end, area(i)); }),
  };
}

}  // namespace

BlockOffsets search_packing(const ArenaBlocks& blocks, std::int64_t enough, std::int64_t work) {
  if (blocks.count() == 0) return {};
  enough = std::max(enough, blocks.lower_bound);
  const BitTable overlaps = make_overlaps(blocks);
  FirstFit fit(blocks, overlaps);
  BlockOffsets best{{}, std::numeric_limits<std::int64_t>::max()};
  for (const BlockOrder& order : greedy_orders(blocks)) {
    const std::int64_t peak = fit.pack(order, best.peak - 1);
    if (peak < best.peak) best = {fit.offsets(), peak};
    if (best.peak == blocks.lower_bound) return best;
  }
  if (work <= 0) return best;
  TreePacking packed = search_trees(blocks, overlaps, enough, work, std::move(best));
  enough = std::max(enough, packed.lowest);
  if (packed.best.peak <= enough) return std::move(packed.best);
  return reinsert_blocks(blocks, fit, std::move(packed.best), enough, work / 2);
}

}  // namespace stowage
