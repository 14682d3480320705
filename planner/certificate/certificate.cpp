#include "planner/certificate/certificate.hpp"

#include <algorithm>

namespace stowage {

std::vector<StorageRange> ranges_of(const std::vector<std::int32_t>& numbers) {
  std::vector<StorageRange> ranges;
  for (const std::int32_t number : numbers) {
    if (ranges.empty() || number > ranges.back().last + 1) ranges.push_back({number, number});
    ranges.back().last = number;
  }
  return ranges;
}

bool RoundedLimit::counts(std::int32_t storage) const {
  const auto found = std::ranges::lower_bound(counted, storage, {}, &StorageRange::last);
  return found != counted.end() && found->first <= storage;
}

std::optional<std::size_t> end_of_tree(const BranchTree& tree, std::size_t begin) {
  std::size_t open = 1;  // trees that have yet to begin
  for (std::size_t i = begin; i < tree.size(); ++i) {
    open = tree[i].leaf() != nullptr ? open - 1 : open + 1;
    if (open == 0) return i + 1;
  }
  return std::nullopt;
}

}  // namespace stowage
