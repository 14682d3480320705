#include "estimator/arena/block_sections.hpp"

#include <algorithm>

namespace stowage {
namespace {

/// By step: its section; one more entry for the end. A section ends where a block's range ends.
std::vector<std::int32_t> sections_by_step(const ArenaBlocks& blocks) {
  std::vector<bool> last(static_cast<std::size_t>(blocks.steps), false);
  for (const auto& live : blocks.live) {
    for (const StepRange& range : live) last[static_cast<std::size_t>(range.end - 1)] = true;
  }
  std::vector<std::int32_t> section_of(last.size() + 1, 0);
  for (std::size_t s = 0; s < last.size(); ++s) {
    section_of[s + 1] = section_of[s] + (last[s] ? 1 : 0);
  }
  return section_of;
}

}  // namespace

BlockSections make_sections(const ArenaBlocks& blocks) {
  const std::vector<std::int32_t> section_of = sections_by_step(blocks);
  const std::int32_t count = section_of.back();
  BlockSections sections{count, std::vector<std::vector<StepRange>>(blocks.count()),
                         BitTable(static_cast<std::size_t>(count), blocks.count())};
  for (std::size_t b = 0; b < blocks.count(); ++b) {
    for (const StepRange& range : blocks.live[b]) {
      const StepRange own{section_of[static_cast<std::size_t>(range.begin)],
                          section_of[static_cast<std::size_t>(range.end)]};
      sections.of_block[b].push_back(own);
      for (std::int32_t s = own.begin; s < own.end; ++s) {
        sections.blocks.set(s, static_cast<std::int32_t>(b));
      }
    }
  }
  return sections;
}

BitTable make_overlaps(const ArenaBlocks& blocks) {
  struct Piece {
    StepRange steps;
    std::int32_t block;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    for (const StepRange& range : blocks.live[i]) {
      pieces.push_back({range, static_cast<std::int32_t>(i)});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.steps.begin < b.steps.begin; });
  BitTable overlaps(blocks.count(), blocks.count());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t j = i + 1; j < pieces.size() && pieces[j].steps.begin < pieces[i].steps.end;
         ++j) {
      overlaps.set(pieces[i].block, pieces[j].block);
      overlaps.set(pieces[j].block, pieces[i].block);
    }
  }
  return overlaps;
}

}  // namespace stowage
