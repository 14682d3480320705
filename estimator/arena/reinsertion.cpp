#include "estimator/arena/reinsertion.hpp"

#include <algorithm>
#include <limits>
#include <random>

namespace stowage {
namespace {

BlockOrder by_offset(const std::vector<std::int64_t>& offset) {
  return descending_blocks(offset.size(), [&](std::size_t i) { return -offset[i]; });
}

class Reinsertion {
 public:
  Reinsertion(const ArenaBlocks& blocks, FirstFit& fit, BlockOffsets start)
      : blocks_(blocks), fit_(fit), best_(std::move(start)), random_(blocks.count()) {}

  BlockOffsets run(std::int64_t target_peak, std::int64_t work) {
    work += fit_.work();
    current_ = best_;
    order_ = by_offset(current_.offset);
    int stuck = 0;
    const int patience = 60 + static_cast<int>(blocks_.count()) / 4;
    while (fit_.work() < work && best_.peak > target_peak) {
      BlockOrder candidate = order_;
      if (stuck < patience) {
        raise(candidate);
      } else {
        stuck = 0;
        candidate = by_offset(best_.offset);
        for (int i = 0; i < 4; ++i) reinsert(candidate, pick(candidate.size()), 0);
      }
      const bool kick = stuck == 0;
      const std::int64_t limit = kick ? std::numeric_limits<std::int64_t>::max() : current_.peak;
      const std::int64_t peak = fit_.pack(candidate, limit);
      ++stuck;
      if (peak > limit) continue;
      if (peak < current_.peak) stuck = 1;
      current_ = {fit_.offsets(), peak};
      order_ = by_offset(current_.offset);
      if (peak < best_.peak) best_ = current_;
    }
    return best_;
  }

 private:
  std::size_t pick(std::size_t count) {
    return static_cast<std::size_t>(random_() % static_cast<std::uint32_t>(count));
  }

  /// Moves the block at `from` to a random earlier place, not before `lowest`.
  void reinsert(BlockOrder& order, std::size_t from, std::size_t lowest) {
    if (from <= lowest) return;
    const std::size_t to = lowest + pick(from - lowest);
    const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
    std::rotate(at(to), at(from), at(from) + 1);
  }

  void raise(BlockOrder& order) {
    std::vector<std::size_t> tops;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto block = static_cast<std::size_t>(order[i]);
      if (current_.offset[block] + blocks_.size[block] == current_.peak) tops.push_back(i);
    }
    std::size_t chosen = tops[pick(tops.size())];
    // Go down a random number of blocks through what the chosen one rests on.
    while (pick(3) == 0) {
      std::vector<std::size_t> beneath;
      for (std::size_t i = 0; i < chosen; ++i) {
        if (fit_.overlap(order[chosen], order[i])) beneath.push_back(i);
      }
      if (beneath.empty()) break;
      chosen = beneath[pick(beneath.size())];
    }
    reinsert(order, chosen, 0);
  }

  const ArenaBlocks& blocks_;
  FirstFit& fit_;
  BlockOffsets best_, current_;
  BlockOrder order_;
  std::mt19937 random_;
};

}  // namespace

BlockOffsets reinsert_blocks(const ArenaBlocks& blocks, FirstFit& fit, BlockOffsets start,
                             std::int64_t target_peak, std::int64_t work) {
  return Reinsertion(blocks, fit, std::move(start)).run(target_peak, work);
}

}  // namespace stowage
