// The internal form of an arena problem: blocks with rounded sizes and compressed time, and their
// offsets as its solution. Internal to estimator/arena.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/step_range.hpp"

namespace stowage {

/// The blocks to place: sizes are rounded and positive, and every block is live at some step.
struct ArenaBlocks {
  std::vector<std::int64_t> size;
  std::vector<std::vector<StepRange>> live;  ///< by block: disjoint, ascending, in compressed steps
  std::vector<std::int64_t> duration;        ///< by block: number of live steps, before compression
  std::int32_t steps = 0;
  std::int64_t lower_bound = 0;  ///< of the peak: at least the largest sum of live sizes

  [[nodiscard]] std::size_t count() const { return size.size(); }
};

/// By step: the sum of the live blocks' sizes.
[[nodiscard]] std::vector<Bytes> live_bytes(const ArenaBlocks& blocks);

struct BlockOffsets {
  std::vector<std::int64_t> offset;  ///< by block
  std::int64_t peak = 0;             ///< max over blocks of offset + size
};

using BlockOrder = std::vector<std::int32_t>;

/// The blocks in descending order of key(block); ties keep ascending numbers.
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
