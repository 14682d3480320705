#include "estimator/arena/greedy_orders.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace stowage {
namespace {

struct BlockShape {
  double size = 0;
  double steps = 0;    // that it is live
  double fullest = 0;  // the largest live sum during its life
  double begin = 0;
  bool returns = false;  // several ranges: its place is taken in between by what leaves in time
  int size_class = 0;    // the power of two below the size
};

std::vector<BlockShape> shapes_of(const ArenaBlocks& blocks) {
  const std::vector<Bytes> live = live_bytes(blocks);
  std::vector<BlockShape> shapes(blocks.count());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    BlockShape& shape = shapes[i];
    shape.size = static_cast<double>(blocks.size[i]);
    shape.size_class = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(blocks.size[i])));
    shape.begin = blocks.live[i].front().begin;
    shape.returns = blocks.live[i].size() > 1;
    Bytes fullest;
    // In the blocks' own steps: those at which nothing starts make no block harder to place.
    for (const StepRange& range : blocks.live[i]) {
      shape.steps += range.length();
      fullest = std::max(fullest,
                         *std::max_element(live.begin() + range.begin, live.begin() + range.end));
    }
    shape.fullest = static_cast<double>(fullest.count());
  }
  return shapes;
}

}  // namespace

// Chosen on about two hundred arenas of training steps, so that the orders complement each other. A
// block's area overrates long lifetimes (such blocks end up at the bottom anyway), and its size
// alone underrates them.
std::vector<BlockOrder> greedy_orders(const ArenaBlocks& blocks) {
  const std::vector<BlockShape> shapes = shapes_of(blocks);
  const auto by = [&](auto key) {
    return descending_blocks(shapes.size(), [&](std::size_t i) { return key(shapes[i]); });
  };
  const auto weight = [](const BlockShape& s) { return s.size * std::sqrt(s.steps); };
  return {
      by(weight),
      by([&](const BlockShape& s) { return std::pair(s.returns, weight(s)); }),
      by([](const BlockShape& s) { return std::pair(s.size_class, s.steps); }),
      by([](const BlockShape& s) { return std::pair(s.size, -s.begin); }),
      by([&](const BlockShape& s) { return s.fullest * s.fullest * weight(s); }),
      by([](const BlockShape& s) { return s.size * std::pow(s.steps, 0.25); }),
      by([](const BlockShape& s) { return std::pair(s.size, s.steps); }),
      by([](const BlockShape& s) { return std::pair(s.size * s.steps, s.size); }),
  };
}

}  // namespace stowage
