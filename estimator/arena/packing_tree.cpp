#include "estimator/arena/packing_tree.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <tuple>

namespace stowage {
namespace {

constexpr std::int64_t beyond = std::numeric_limits<std::int64_t>::max();

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// By block: the previous block with equal size and lifetime, or -1.
std::vector<std::int32_t> find_twins(const ArenaBlocks& blocks) {
  const auto like = [&](std::int32_t block) {
    return std::tie(blocks.size[at(block)], blocks.live[at(block)]);
  };
  std::vector<std::int32_t> sorted(blocks.count()), twins(blocks.count(), -1);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::int32_t a, std::int32_t b) { return like(a) < like(b); });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (like(sorted[i - 1]) == like(sorted[i])) twins[at(sorted[i])] = sorted[i - 1];
  }
  return twins;
}

}  // namespace

PackingTree::PackingTree(const ArenaBlocks& blocks, const BlockSections& sections,
                         const BitTable& overlaps, std::int64_t capacity, const Ranking& ranking)
    : problem_(blocks),
      sections_(sections),
      overlaps_(overlaps),
      capacity_(capacity),
      ranking_(ranking),
      offset_(blocks.count(), 0),
      is_open_(1, blocks.count()),
      open_(blocks.count()),
      place_of_(blocks.count()),
      unplaced_(at(sections.count), 0),
      crossing_(at(sections.count), 0) {
  assert(blocks.count() > 0);
  const std::vector<Index> twins = find_twins(blocks);
  section_.resize(at(sections.count), {0, -1});
  for (Index b = 0; at(b) < blocks.count(); ++b) {
    block_.push_back({blocks.size[at(b)], 0, 0, twins[at(b)]});
    is_open_.set(0, b);
    count_open(b, 1);
    for (const StepRange& own : sections.of_block[at(b)]) {
      for (Index s = own.begin; s < own.end; ++s) section_[at(s)].lowest = b;
    }
  }
  std::iota(open_.begin(), open_.end(), 0);
  const bool too_full = std::any_of(unplaced_.begin(), unplaced_.end(),
                                    [&](std::int64_t bytes) { return bytes > capacity; });
  if (too_full) return;
  split_apart(0, static_cast<Index>(open_.size()));
  levels_.push_back({.part = {}, .last = {0, 0}, .highest = 0, .parts_end = parts_.size()});
}

/// Chooses the next block by key. If some section has no room above a choice's height, no later
/// choice is possible either.
bool PackingTree::choose(Level& level) {
  std::int64_t lowest_top = beyond;  // a block above this leaves room for another beneath
  PlacementKey first{beyond, 0};
  Index chosen = -1;
  work_ -= level.part.end - level.part.begin;
  for (Index i = level.part.begin; i < level.part.end; ++i) {
    const Index candidate = open_[at(i)];
    const Block& block = block_[at(candidate)];
    lowest_top = std::min(lowest_top, block.height + block.size);
    const PlacementKey key{block.height, block.rank};
    if (key <= level.last || key >= first) continue;
    if (block.twin >= 0 && is_open_.test(0, block.twin)) continue;
    first = key;
    chosen = candidate;
  }
  if (chosen < 0 || first.offset >= lowest_top || first.offset > level.highest) return false;
  level.block = chosen;
  level.last = first;
  return true;
}

/// Adds a block to the unplaced ones, or removes it.
void PackingTree::count_open(Index block, int sign) {
  const std::int64_t bytes = sign * problem_.size[at(block)];
  const auto& ranges = sections_.of_block[at(block)];
  for (const StepRange& own : ranges) {
    for (Index s = own.begin; s < own.end; ++s) unplaced_[at(s)] += bytes;
  }
  for (Index s = ranges.front().begin; s + 1 < ranges.back().end; ++s) crossing_[at(s)] += sign;
}

/// Places the level's block at its height. False: some section cannot hold the rest.
bool PackingTree::place(Level& level) {
  const Index block = level.block;
  level.heights = heights_.size();
  level.floors = floors_.size();
  level.ranks = ranks_.size();
  level.highest_top = highest_top_;
  level.first_part = level.next_part = level.parts_end = parts_.size();
  offset_[at(block)] = level.last.offset;
  is_open_.clear(0, block);
  count_open(block, -1);
  const Index last = level.part.end - 1;  // the part's remainder stays in one piece
  const Index other = open_[at(last)];
  std::swap(open_[at(place_of_[at(block)])], open_[at(last)]);
  std::swap(place_of_[at(block)], place_of_[at(other)]);
  return raise_above(level, level.last.offset + block_[at(block)].size);
}

/// Raises the heights of the unplaced blocks that overlap the level's block to its top, and the
/// floors of the sections.
bool PackingTree::raise_above(Level& level, std::int64_t top) {
  const auto& ranges = sections_.of_block[at(level.block)];
  StepRange touched{ranges.front().begin, ranges.back().end};
  std::int64_t raised = 0;
  bool fits = true;
  level.covered = false;
  const std::uint64_t* neighbours = overlaps_.row(level.block);
  BitTable::for_each_common(neighbours, is_open_.row(0), is_open_.words(), [&](Index other) {
    level.covered = true;
    Block& block = block_[at(other)];
    if (block.height >= top) return;
    fits = fits && top + block.size <= capacity_;
    heights_.push_back({other, block.height});
    block.height = top;
    ++raised;
    const auto& theirs = sections_.of_block[at(other)];
    touched.begin = std::min(touched.begin, theirs.front().begin);
    touched.end = std::max(touched.end, theirs.back().end);
  });
  work_ -= static_cast<std::int64_t>(is_open_.words()) + raised + touched.length() / 4;
  if (!fits) return false;
  // In the block's own sections any height may be the lowest now, in others none above the top.
  highest_top_ = std::max(highest_top_, top);
  const auto hold = [&](StepRange range, std::int64_t floor) {
    const std::int64_t room = capacity_ - floor;
    for (Index s = range.begin; s < range.end; ++s) {
      if (unplaced_[at(s)] > room && !leaves_room(s, level.last.offset)) return false;
    }
    return true;
  };
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const StepRange& own) { return hold(own, highest_top_); }) &&
         hold(touched, top);
}

/// Whether a section has room for its unplaced blocks. Heights only rise on the way down the tree,
/// so its lowest block remains the lowest until it is placed or raised.
bool PackingTree::leaves_room(Index section, std::int64_t offset) {
  Section& known = section_[at(section)];
  if (!is_open_.test(0, known.lowest) || block_[at(known.lowest)].height != known.floor) {
    Section found{beyond, -1};
    BitTable::for_each_common(sections_.blocks.row(section), is_open_.row(0), is_open_.words(),
                              [&](Index other) {
                                work_ -= 1;
                                const std::int64_t height = block_[at(other)].height;
                                if (height < found.floor) found = {height, other};
                              });
    work_ -= static_cast<std::int64_t>(is_open_.words());
    floors_.push_back({section, known});
    known = found;
  }
  return std::max(known.floor, offset) + unplaced_[at(section)] <= capacity_;
}

void PackingTree::undo(Level& level) {
  const auto reopen = [&](Index block) {
    is_open_.set(0, block);
    count_open(block, 1);
  };
  // Of its parts, those before the latest were solved and are still placed.
  for (std::size_t p = level.first_part; p + 1 < level.next_part; ++p) {
    for (Index i = parts_[p].begin; i < parts_[p].end; ++i) reopen(open_[at(i)]);
  }
  reopen(level.block);
  level.block = -1;
  highest_top_ = level.highest_top;
  parts_.resize(level.first_part);
  level.next_part = level.parts_end = level.first_part;
  for (; ranks_.size() > level.ranks; ranks_.pop_back()) {
    block_[at(ranks_.back().index)].rank = ranks_.back().before;
  }
  for (; floors_.size() > level.floors; floors_.pop_back()) {
    section_[at(floors_.back().index)] = floors_.back().before;
  }
  for (; heights_.size() > level.heights; heights_.pop_back()) {
    block_[at(heights_.back().index)].height = heights_.back().before;
  }
  // The block is as low as possible and no unplaced block can lie on it, so no other choice is
  // better.
  if (!level.covered) level.last = {beyond, 0};
}

/// Lists the parts that the level's placement leaves.
void PackingTree::split(Level& level) {
  const Index end = level.part.end - 1;
  if (level.part.begin == end) return;
  const auto& ranges = sections_.of_block[at(level.block)];
  const auto begin = crossing_.begin();
  const bool cut = std::find(begin + ranges.front().begin, begin + ranges.back().end - 1, 0) !=
                   begin + ranges.back().end - 1;
  if (cut) {
    split_apart(level.part.begin, end);
  } else {
    parts_.push_back({level.part.begin, end, level.part.sections});
  }
  level.parts_end = parts_.size();
}

/// Appends the parts of open_[begin, end), from the first section to the last.
void PackingTree::split_apart(Index begin, Index end) {
  const auto first = [&](Index block) { return sections_.of_block[at(block)].front().begin; };
  std::sort(open_.begin() + begin, open_.begin() + end,
            [&](Index a, Index b) { return std::pair(first(a), a) < std::pair(first(b), b); });
  work_ -= std::int64_t{4} * (end - begin);
  const std::size_t none = parts_.size();
  for (Index i = begin; i < end; ++i) {
    const Index block = open_[at(i)];
    place_of_[at(block)] = i;
    if (parts_.size() == none || first(block) >= parts_.back().sections.end) {
      parts_.push_back({i, i, {first(block), 0}});
    }
    Part& part = parts_.back();
    part.end = i + 1;
    part.sections.end = std::max(part.sections.end, sections_.of_block[at(block)].back().end);
  }
}

/// Ranks the blocks of a part by the unplaced bytes.
void PackingTree::rank(const Part& part) {
  std::vector<Index> sorted(open_.begin() + part.begin, open_.begin() + part.end);
  sort_by_rank(sorted, ranking_, problem_, sections_, unplaced_);
  work_ -= 8 * static_cast<std::int64_t>(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    Index& rank = block_[at(sorted[i])].rank;
    ranks_.push_back({sorted[i], rank});
    rank = static_cast<Index>(i);
  }
}

void PackingTree::enter(const Part& part, PlacementKey last) {
  const auto begin = unplaced_.begin();
  const std::int64_t fullest =
      *std::max_element(begin + part.sections.begin, begin + part.sections.end);
  work_ -= part.sections.length() / 4;
  levels_.push_back({.part = part, .last = last, .highest = capacity_ - fullest});
}

/// One step: down into a part, a choice made and placed, or back up.
TreeOutcome PackingTree::step() {
  Level& level = levels_.back();
  const bool root = levels_.size() == 1;
  if (!root && level.block < 0) {
    if (!choose(level)) {
      levels_.pop_back();
      if (levels_.size() == 1) return TreeOutcome::infeasible;
      undo(levels_.back());
    } else if (place(level)) {
      split(level);
    } else {
      undo(level);
    }
  } else if (level.next_part < level.parts_end) {
    const bool whole = !root && level.parts_end - level.first_part == 1;
    const Part part = parts_[level.next_part++];
    if (!whole) rank(part);
    enter(part, {level.last.offset, whole ? level.last.rank : -1});
  } else {
    if (root) return TreeOutcome::found;
    parts_.resize(level.first_part);
    levels_.pop_back();
  }
  return TreeOutcome::out_of_work;
}

TreeOutcome PackingTree::search(std::int64_t& work) {
  if (levels_.empty()) return TreeOutcome::infeasible;
  TreeOutcome outcome = TreeOutcome::out_of_work;
  work_ = work;
  while (work_ > 0 && outcome == TreeOutcome::out_of_work) outcome = step();
  work = work_;
  return outcome;
}

BlockOffsets PackingTree::packing() const {
  BlockOffsets result{offset_, 0};
  for (std::size_t b = 0; b < offset_.size(); ++b) {
    result.peak = std::max(result.peak, offset_[b] + problem_.size[b]);
  }
  return result;
}

}  // namespace stowage
