#include "estimator/arena/block_ranking.hpp"

#include <algorithm>

namespace stowage {
namespace {

std::int64_t fullest_section(const BlockSections& sections, std::size_t block,
                             const std::vector<std::int64_t>& unplaced) {
  std::int64_t most = 0;
  for (const StepRange& own : sections.of_block[block]) {
    most =
        std::max(most, *std::max_element(unplaced.begin() + own.begin, unplaced.begin() + own.end));
  }
  return most;
}

}  // namespace

void sort_by_rank(std::span<std::int32_t> chosen, const Ranking& ranking, const ArenaBlocks& blocks,
                  const BlockSections& sections, const std::vector<std::int64_t>& unplaced) {
  struct Entry {
    std::array<double, std::tuple_size_v<Ranking>> keys;
    std::int32_t block;
  };
  std::vector<Entry> entries;
  entries.reserve(chosen.size());
  for (const std::int32_t index : chosen) {
    const auto block = static_cast<std::size_t>(index);
    const auto duration = static_cast<double>(blocks.duration[block]);
    Entry entry{{}, index};
    for (std::size_t k = 0; k < ranking.size(); ++k) {
      switch (ranking[k]) {
        case RankBy::fullest:
          entry.keys[k] = static_cast<double>(fullest_section(sections, block, unplaced));
          break;
        case RankBy::duration:
          entry.keys[k] = duration;
          break;
        case RankBy::area:
          entry.keys[k] = static_cast<double>(blocks.size[block]) * duration;
          break;
      }
    }
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.keys != b.keys ? a.keys > b.keys : a.block < b.block;
  });
  std::transform(entries.begin(), entries.end(), chosen.begin(),
                 [](const Entry& entry) { return entry.block; });
}

}  // namespace stowage
