#include "estimator/arena/tree_race.hpp"

#include <algorithm>

namespace stowage {
namespace {

/// Enough work to reach a leaf of the tree with few steps back.
std::int64_t way_down(const ArenaBlocks& blocks) {
  const auto n = static_cast<std::int64_t>(blocks.count());
  return 5 * n * n;
}

/// Enough work to reach a leaf with each ranking.
std::int64_t all_ways_down(const ArenaBlocks& blocks) {
  return way_down(blocks) * static_cast<std::int64_t>(race_rankings.size());
}

/// Tries single capacities, each with a share of the work that is left.
class Capacities {
 public:
  Capacities(const ArenaBlocks& blocks, const BitTable& overlaps, std::int64_t work)
      : blocks_(blocks), overlaps_(overlaps), sections_(make_sections(blocks)), work_(work) {}

  TreeOutcome attempt(std::int64_t capacity, std::int64_t share, BlockOffsets& best) {
    std::int64_t left = std::min(std::max(share, all_ways_down(blocks_)), work_);
    work_ -= left;
    RaceResult result = race_trees(blocks_, sections_, overlaps_, capacity, left);
    work_ += std::max<std::int64_t>(left, 0);
    if (result.outcome == TreeOutcome::found) best = std::move(result.packing);
    return result.outcome;
  }

  [[nodiscard]] bool spent() const { return work_ <= 0; }

 private:
  const ArenaBlocks& blocks_;
  const BitTable& overlaps_;
  BlockSections sections_;
  std::int64_t work_;
};

}  // namespace

RaceResult race_trees(const ArenaBlocks& blocks, const BlockSections& sections,
                      const BitTable& overlaps, std::int64_t capacity, std::int64_t& work) {
  std::vector<PackingTree> trees;
  trees.reserve(race_rankings.size());
  for (const Ranking& ranking : race_rankings) {
    trees.emplace_back(blocks, sections, overlaps, capacity, ranking);
  }
  // Many problems need few steps back, so each search may reach a leaf before the next one starts.
  const std::int64_t slice = way_down(blocks);
  while (work > 0) {
    for (PackingTree& tree : trees) {
      std::int64_t turn = std::min(slice, work);
      work -= turn;
      const TreeOutcome outcome = tree.search(turn);
      work += turn;
      if (outcome == TreeOutcome::found) return {outcome, tree.packing()};
      if (outcome == TreeOutcome::infeasible) return {outcome, {}};
      if (work <= 0) break;
    }
  }
  return {};
}

TreePacking search_trees(const ArenaBlocks& blocks, const BitTable& overlaps, std::int64_t enough,
                         std::int64_t work, BlockOffsets best) {
  Capacities capacities(blocks, overlaps, work);
  TreePacking result{std::move(best), blocks.lower_bound};
  bool all_known = true;  // each capacity tried was decided: it has a packing, or it has none
  const auto attempt = [&](std::int64_t capacity, std::int64_t share) {
    const TreeOutcome outcome = capacities.attempt(capacity, share, result.best);
    if (outcome == TreeOutcome::infeasible) result.lowest = capacity + 1;
    if (outcome == TreeOutcome::out_of_work) all_known = false;
    return outcome;
  };
  for (std::int64_t capacity = enough, step = enough / 512 + 1;
       capacity < result.best.peak && !capacities.spent(); capacity += step, step += step) {
    // The first capacity is the target, so it gets the largest share.
    const std::int64_t share = work * (capacity == enough ? 3 : 1) / 10;
    if (attempt(capacity, share) == TreeOutcome::found) break;
  }
  while (all_known && result.best.peak > enough && result.lowest < result.best.peak &&
         !capacities.spent()) {
    attempt(result.lowest + (result.best.peak - 1 - result.lowest) / 2, work / 10);
  }
  return result;
}

}  // namespace stowage
