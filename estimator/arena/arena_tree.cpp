#include "estimator/arena/arena_tree.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace stowage {
namespace {

using Index = std::int32_t;
constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max();

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

class TreeSearch {
 public:
  TreeSearch(const ArenaBlocks& blocks, const BlockSections& sections, std::int64_t capacity,
             const std::vector<Index>& preference, std::int64_t work)
      : blocks_(blocks),
        sections_(sections),
        capacity_(capacity),
        preference_(preference),
        rank_(blocks.count()),
        work_(work),
        left_(blocks.count()) {
    for (std::size_t i = 0; i < preference.size(); ++i) {
      rank_[at(preference[i])] = static_cast<Index>(i);
    }
    height_.assign(blocks.count(), 0);
    offset_.assign(blocks.count(), -1);
    remaining_.assign(sections_.blocks.size(), 0);
    lowest_height_.assign(sections_.blocks.size(), 0);
    for (std::size_t s = 0; s < sections_.blocks.size(); ++s) {
      lowest_.push_back(sections_.blocks[s].front());
      for (const Index b : sections_.blocks[s]) remaining_[s] += blocks.size[at(b)];
    }
  }

  bool run() { return descend(); }
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offset_; }
  [[nodiscard]] std::int64_t work_left() const { return work_; }

 private:
  struct Change {
    std::int64_t* where;
    std::int64_t before;
  };
  struct Candidate {
    std::int64_t offset;
    Index rank;
  };

  void set(std::int64_t& where, std::int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  void undo(std::size_t mark) {
    while (trail_.size() > mark) {
      *trail_.back().where = trail_.back().before;
      trail_.pop_back();
    }
  }

  /// What may come next without breaking the order (height, rank) that makes packings canonical.
  std::vector<Candidate> candidates(std::int64_t last_offset, Index last_rank) {
    std::int64_t ceiling = infinite;  // what starts above it leaves room for another beneath
    for (std::size_t b = 0; b < offset_.size(); ++b) {
      if (offset_[b] < 0) ceiling = std::min(ceiling, height_[b] + blocks_.size[b]);
    }
    std::vector<Candidate> result;
    for (std::size_t b = 0; b < offset_.size(); ++b) {
      if (offset_[b] >= 0 || height_[b] >= ceiling) continue;
      if (height_[b] < last_offset || (height_[b] == last_offset && rank_[b] < last_rank)) continue;
      result.push_back({height_[b], rank_[b]});
    }
    work_ -= static_cast<std::int64_t>(offset_.size());
    std::sort(result.begin(), result.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.offset, a.rank) < std::tie(b.offset, b.rank);
    });
    return result;
  }

  /// Places a block; false: some step cannot hold the rest.
  bool place(Index block, std::int64_t offset) {
    set(offset_[at(block)], offset);
    const std::int64_t top = offset + blocks_.size[at(block)];
    if (top > capacity_) return false;
    if (top > highest_) set(highest_, top);
    for (const Index s : sections_.of_block[at(block)]) {
      set(remaining_[at(s)], remaining_[at(s)] - blocks_.size[at(block)]);
    }
    work_ -= static_cast<std::int64_t>(sections_.overlapping[at(block)].size());
    for (const Index other : sections_.overlapping[at(block)]) {
      if (offset_[at(other)] >= 0 || height_[at(other)] >= top) continue;
      if (top + blocks_.size[at(other)] > capacity_) return false;
      set(height_[at(other)], top);
    }
    return rest_fits(offset);
  }

  /// Nothing to come lies below the last offset, nor below what it rests on.
  bool rest_fits(std::int64_t last_offset) {
    work_ -= static_cast<std::int64_t>(remaining_.size());
    for (std::size_t s = 0; s < remaining_.size(); ++s) {
      // Nothing lies higher than the highest top: with that much room there is nothing to look at.
      if (remaining_[s] == 0 || highest_ + remaining_[s] <= capacity_) continue;
      refresh_lowest(s);
      if (std::max(height_[at(lowest_[s])], last_offset) + remaining_[s] > capacity_) return false;
    }
    return true;
  }

  /// Heights only rise on the way down, so the lowest stays the lowest until it is placed or rises.
  void refresh_lowest(std::size_t section) {
    const auto known = at(lowest_[section]);
    if (offset_[known] < 0 && height_[known] == lowest_height_[section]) return;
    std::int64_t lowest = -1;
    for (const Index b : sections_.blocks[section]) {
      if (offset_[at(b)] < 0 && (lowest < 0 || height_[at(b)] < height_[at(lowest)])) lowest = b;
    }
    work_ -= static_cast<std::int64_t>(sections_.blocks[section].size());
    set(lowest_[section], lowest);
    set(lowest_height_[section], height_[at(lowest)]);
  }

  /// One block's turn on the way down: what could be placed, and what was.
  struct Level {
    std::vector<Candidate> candidates;
    std::size_t next = 0;
    Index block = 0;       // placed here
    std::size_t mark = 0;  // the trail's length before that
  };

  void step_back(Level& level) {
    ++left_;
    undo(level.mark);
    // With nothing above it, no other choice here can do better than this one did.
    if (hatless(level.block)) level.next = level.candidates.size();
  }

  /// By a list of levels and not by calls of itself: there are as many as blocks.
  bool descend() {
    if (left_ == 0) return true;
    std::vector<Level> levels;
    levels.push_back({.candidates = candidates(0, -1)});
    while (work_ > 0) {
      Level& level = levels.back();
      if (level.next == level.candidates.size()) {
        levels.pop_back();
        if (levels.empty()) return false;
        step_back(levels.back());
        continue;
      }
      const Candidate candidate = level.candidates[level.next++];
      level.block = preference_[at(candidate.rank)];
      level.mark = trail_.size();
      --left_;
      if (!place(level.block, candidate.offset)) {
        step_back(level);
      } else if (left_ == 0) {
        return true;
      } else {
        levels.push_back({.candidates = candidates(candidate.offset, candidate.rank)});
      }
    }
    return false;
  }

  [[nodiscard]] bool hatless(Index block) const {
    for (const Index other : sections_.overlapping[at(block)]) {
      if (offset_[at(other)] < 0) return false;
    }
    return true;
  }

  const ArenaBlocks& blocks_;
  const BlockSections& sections_;
  std::int64_t capacity_;
  const std::vector<Index>& preference_;
  std::vector<Index> rank_;
  std::int64_t work_;
  std::size_t left_;
  std::int64_t highest_ = 0;                 // top of what is placed
  std::vector<std::int64_t> height_;         // by block: the lowest it can lie
  std::vector<std::int64_t> offset_;         // by block; -1: not placed
  std::vector<std::int64_t> remaining_;      // by section: bytes not placed
  std::vector<std::int64_t> lowest_;         // by section: of what is not placed, the lowest block
  std::vector<std::int64_t> lowest_height_;  // by section: its height when it was found
  std::vector<Change> trail_;
};

}  // namespace

BlockSections make_sections(const ArenaBlocks& blocks) {
  // A step is dropped where nothing that is live then has gone at the next.
  std::vector<bool> kept(static_cast<std::size_t>(blocks.steps), false);
  for (const auto& live : blocks.live) {
    for (const StepRange& range : live) kept[at(range.end - 1)] = true;
  }
  std::vector<Index> section_of(kept.size() + 1, 0);
  for (std::size_t s = 0; s < kept.size(); ++s)
    section_of[s + 1] = section_of[s] + (kept[s] ? 1 : 0);
  BlockSections sections;
  sections.of_block.resize(blocks.count());
  sections.blocks.resize(at(section_of.back()));
  sections.overlapping.resize(blocks.count());
  for (std::size_t b = 0; b < blocks.count(); ++b) {
    for (const StepRange& range : blocks.live[b]) {
      for (Index s = section_of[at(range.begin)]; s < section_of[at(range.end)]; ++s) {
        sections.of_block[b].push_back(s);
        sections.blocks[at(s)].push_back(static_cast<Index>(b));
      }
    }
  }
  // Where two blocks share a section, a range of one of them begins in one of the other's.
  for (std::size_t b = 0; b < blocks.count(); ++b) {
    for (const StepRange& range : blocks.live[b]) {
      for (const Index other : sections.blocks[at(section_of[at(range.begin)])]) {
        if (at(other) == b) continue;
        sections.overlapping[b].push_back(other);
        sections.overlapping[at(other)].push_back(static_cast<Index>(b));
      }
    }
  }
  for (std::vector<Index>& others : sections.overlapping) {
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
  }
  return sections;
}

std::optional<BlockOffsets> tree_packing(const ArenaBlocks& blocks, const BlockSections& sections,
                                         std::int64_t capacity,
                                         const std::vector<std::int32_t>& preference,
                                         std::int64_t& work) {
  TreeSearch search(blocks, sections, capacity, preference, work);
  const bool found = search.run();
  work = search.work_left();
  if (!found) return std::nullopt;
  BlockOffsets result{search.offsets(), 0};
  for (std::size_t b = 0; b < blocks.count(); ++b) {
    result.peak = std::max(result.peak, result.offset[b] + blocks.size[b]);
  }
  return result;
}

}  // namespace stowage
