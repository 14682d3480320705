#include "estimator/arena/capacity_search.hpp"

#include <algorithm>

namespace stowage {
namespace {

/// Enough work to reach a leaf of the tree with few steps back.
std::int64_t work_to_leaf(const ArenaBlocks& blocks) {
  const auto n = static_cast<std::int64_t>(blocks.count());
  return 5 * n * n;
}

/// Enough work to reach a leaf with each ranking.
std::int64_t work_to_leaf_by_all(const ArenaBlocks& blocks) {
  return work_to_leaf(blocks) * static_cast<std::int64_t>(search_rankings.size());
}

/// Tries single capacities, each with a share of the work that is left.
class CapacityAttempts {
 public:
  CapacityAttempts(const ArenaBlocks& blocks, const BitTable& overlaps, std::int64_t work)
      : blocks_(blocks), overlaps_(overlaps), sections_(make_sections(blocks)), work_(work) {}

  TreeOutcome attempt(std::int64_t capacity, std::int64_t share, BlockOffsets& best) {
    std::int64_t left = std::min(std::max(share, work_to_leaf_by_all(blocks_)), work_);
    work_ -= left;
    RankingSearch result = search_rankings_in_turn(blocks_, sections_, overlaps_, capacity, left);
    work_ += std::max<std::int64_t>(left, 0);
    if (result.outcome == TreeOutcome::found) best = std::move(result.packing);
    return result.outcome;
  }

  [[nodiscard]] bool out_of_work() const { return work_ <= 0; }
  [[nodiscard]] std::int64_t left() const { return work_; }

 private:
  const ArenaBlocks& blocks_;
  const BitTable& overlaps_;
  BlockSections sections_;
  std::int64_t work_;
};

}  // namespace

RankingSearch search_rankings_in_turn(const ArenaBlocks& blocks, const BlockSections& sections,
                                      const BitTable& overlaps, std::int64_t capacity,
                                      std::int64_t& work) {
  std::vector<PackingTree> trees;
  trees.reserve(search_rankings.size());
  for (const Ranking& ranking : search_rankings) {
    trees.emplace_back(blocks, sections, overlaps, capacity, ranking);
  }
  // Many problems need few steps back, so each search may reach a leaf before the next one starts.
  const std::int64_t slice = work_to_leaf(blocks);
  while (work > 0) {
    for (PackingTree& tree : trees) {
      std::int64_t slice_left = std::min(slice, work);
      work -= slice_left;
      const TreeOutcome outcome = tree.search(slice_left);
      work += slice_left;
      if (outcome == TreeOutcome::found) return {outcome, tree.packing()};
      if (outcome == TreeOutcome::infeasible) return {outcome, {}};
      if (work <= 0) break;
    }
  }
  return {};
}

TreePacking search_trees(const ArenaBlocks& blocks, const BitTable& overlaps,
                         std::int64_t target_peak, std::int64_t work, BlockOffsets best) {
  CapacityAttempts capacities(blocks, overlaps, work);
  TreePacking result{std::move(best), blocks.lower_bound, 0};
  bool all_known = true;  // each capacity tried was decided: it has a packing, or it has none
  const auto attempt = [&](std::int64_t capacity, std::int64_t share) {
    const TreeOutcome outcome = capacities.attempt(capacity, share, result.best);
    if (outcome == TreeOutcome::infeasible) result.lowest = capacity + 1;
    if (outcome == TreeOutcome::out_of_work) all_known = false;
    return outcome;
  };
  for (std::int64_t capacity = target_peak, step = target_peak / 512 + 1;
       capacity < result.best.peak && !capacities.out_of_work(); capacity += step, step += step) {
    // The first capacity is the target, so it gets the largest share.
    const std::int64_t share = work * (capacity == target_peak ? 3 : 1) / 10;
    if (attempt(capacity, share) == TreeOutcome::found) break;
  }
  while (all_known && result.best.peak > target_peak && result.lowest < result.best.peak &&
         !capacities.out_of_work()) {
    attempt(result.lowest + (result.best.peak - 1 - result.lowest) / 2, work / 10);
  }
  result.work = work - capacities.left();
  return result;
}

}  // namespace stowage
