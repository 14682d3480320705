#include "estimator/arena/first_fit.hpp"

#include <algorithm>

namespace stowage {

FirstFit::FirstFit(const ArenaBlocks& blocks, const BitTable& overlaps)
    : blocks_(blocks), overlaps_(overlaps), offset_(blocks.count()) {
  placed_.reserve(blocks.count());
}

std::int64_t FirstFit::pack(const BlockOrder& order, std::int64_t limit) {
  placed_.clear();
  std::int64_t peak = 0;
  for (const std::int32_t block : order) {
    const auto i = static_cast<std::size_t>(block);
    const std::int64_t size = blocks_.size[i];
    const std::int64_t offset = lowest_gap(block, size);
    peak = std::max(peak, offset + size);
    if (peak > limit) return peak;
    offset_[i] = offset;
    const Placed entry{offset, offset + size, block};
    placed_.insert(
        std::upper_bound(placed_.begin(), placed_.end(), entry,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        entry);
  }
  return peak;
}

std::int64_t FirstFit::lowest_gap(std::int32_t block, std::int64_t size) {
  const std::uint64_t* row = overlaps_.row(block);
  std::int64_t floor = 0;
  std::size_t seen = 0;
  for (; seen < placed_.size(); ++seen) {
    const Placed& other = placed_[seen];
    if (other.end <= floor || !BitTable::test(row, other.block)) continue;
    if (other.begin - floor >= size) break;
    floor = other.end;
  }
  work_ += static_cast<std::int64_t>(seen) + 8;
  return floor;
}

}  // namespace stowage
