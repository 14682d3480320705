#include "estimator/arena/sweep_packing.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace stowage {

/// Goes over time once. At each step it first frees the address ranges of the blocks that end,
/// merging them with free neighbours, then places the blocks that start, the largest first: each in
/// the smallest free range that is large enough, else at the top.
BlockOffsets sweep_packing(const ArenaBlocks& blocks) {
  // A block with several ranges keeps its place between them.
  const std::size_t n = blocks.count();
  std::vector<std::vector<std::int32_t>> starting(static_cast<std::size_t>(blocks.steps) + 1),
      ending(static_cast<std::size_t>(blocks.steps) + 1);
  for (std::size_t i = 0; i < n; ++i) {
    starting[static_cast<std::size_t>(blocks.live[i].front().begin)].push_back(
        static_cast<std::int32_t>(i));
    ending[static_cast<std::size_t>(blocks.live[i].back().end)].push_back(
        static_cast<std::int32_t>(i));
  }
  BlockOffsets result{std::vector<std::int64_t>(n), 0};
  std::map<std::int64_t, std::int64_t> free_at;                  // offset -> size
  std::set<std::pair<std::int64_t, std::int64_t>> free_by_size;  // (size, offset)
  const auto add_free = [&](std::int64_t offset, std::int64_t size) {
    free_at.emplace(offset, size);
    free_by_size.emplace(size, offset);
  };
  const auto take_free = [&](std::map<std::int64_t, std::int64_t>::iterator span) {
    free_by_size.erase({span->second, span->first});
    return free_at.erase(span);
  };
  for (std::size_t t = 0; t < starting.size(); ++t) {
    for (const std::int32_t block : ending[t]) {
      std::int64_t offset = result.offset[static_cast<std::size_t>(block)];
      std::int64_t size = blocks.size[static_cast<std::size_t>(block)];
      auto after = free_at.lower_bound(offset);
      if (after != free_at.end() && after->first == offset + size) {
        size += after->second;
        after = take_free(after);
      }
      if (after != free_at.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == offset) {
          offset = before->first;
          size += before->second;
          take_free(before);
        }
      }
      add_free(offset, size);
    }
    std::stable_sort(starting[t].begin(), starting[t].end(), [&](std::int32_t a, std::int32_t b) {
      return blocks.size[static_cast<std::size_t>(a)] > blocks.size[static_cast<std::size_t>(b)];
    });
    for (const std::int32_t block : starting[t]) {
      const std::int64_t size = blocks.size[static_cast<std::size_t>(block)];
      std::int64_t& offset = result.offset[static_cast<std::size_t>(block)];
      const auto fit = free_by_size.lower_bound({size, 0});
      if (fit != free_by_size.end()) {
        offset = fit->second;
        const std::int64_t left = fit->first - size;
        take_free(free_at.find(offset));
        if (left > 0) add_free(offset + size, left);
        continue;
      }
      // Grow at the top, from the free span that reaches it if there is one.
      offset = result.peak;
      if (!free_at.empty()) {
        const auto last = std::prev(free_at.end());
        if (last->first + last->second == result.peak) {
          offset = last->first;
          take_free(last);
        }
      }
      result.peak = offset + size;
    }
  }
  return result;
}

}  // namespace stowage
