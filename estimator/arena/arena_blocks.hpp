// The arena problem as its searches see it: blocks with rounded sizes and compressed time, and what
// an answer to it is. Internal to estimator/arena.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"

namespace stowage {

/// The blocks left to place: sizes are rounded and positive, every block is live at some step.
struct ArenaBlocks {
  std::vector<std::int64_t> size;
  std::vector<std::vector<StepRange>> live;  ///< by block: disjoint, ascending, in compressed steps
  std::vector<std::int64_t> duration;  ///< by block: steps that it is live, before compression
  std::int32_t steps = 0;
  std::int64_t lower_bound = 0;  ///< of any peak: at least the largest sum of live sizes

  [[nodiscard]] std::size_t count() const { return size.size(); }
};

/// What is live at each of the blocks' steps.
[[nodiscard]] std::vector<Bytes> live_bytes(const ArenaBlocks& blocks);

struct BlockOffsets {
  std::vector<std::int64_t> offset;  ///< by block
  std::int64_t peak = 0;             ///< max over blocks of offset + size
};

using BlockOrder = std::vector<std::int32_t>;

/// The blocks by falling key(block); those with equal keys in their own order.
template <typename Key>
[[nodiscard]] BlockOrder descending_blocks(std::size_t count, Key key) {
  BlockOrder order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return key(static_cast<std::size_t>(a)) > key(static_cast<std::size_t>(b));
  });
  return order;
}

}  // namespace stowage
