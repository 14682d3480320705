// Tree search for a packing within a capacity, complete if it is given enough work.
//
// Every packing can be pushed down until each block rests on another or on the bottom, and then
// read by rising offset. The search makes just these packings, block by block in that order:
//
//   height    of a block that is not placed: the top of what it must lie on so far, its offset if
//             it comes next
//   turn      (offset, rank) of a placement. The turns of a packing rise, so that each packing is
//             made in one order only; the rank decides between blocks at one height
//   section   see block_sections.hpp. What is not placed yet of a section lies above its floor, the
//             lowest height in it, and above the last turn's offset: if it ends above the capacity
//             from there, the branch is left
//   part      blocks that are not placed, in a stretch of sections that none of the others enters.
//             Where a placement leaves several parts, each is solved by itself and ranked anew; if
//             one cannot be solved, the placement is taken back, whatever the others could do
//
// Left out as no better than another branch:
//   - a block whose height is above some block that could lie wholly beneath it,
//   - after a block that nothing is left to lie on: all other choices in its place,
//   - of two blocks with equal sizes and lives, the second before the first.
//
// After MiniMalloc: Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated
// Machine Learning", ASPLOS 2023. Internal to estimator/arena.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/arena/block_ranking.hpp"

namespace stowage {

enum class TreeOutcome {
  found,
  infeasible,   ///< no packing is within the capacity
  out_of_work,  ///< neither is known yet
};

/// One search, which can be interrupted. Iterative: recursion would be as deep as there are blocks.
/// Memory: O(blocks + sections), and what the steps taken down the tree have changed.
class PackingTree {
 public:
  /// The first three must outlive the search. At least one block.
  PackingTree(const ArenaBlocks& blocks, const BlockSections& sections, const BitTable& overlaps,
              std::int64_t capacity, const Ranking& ranking);

  /// Goes on with the search for about `work` steps (2 to 3 ns each) and takes off what was spent.
  /// Deterministic: where it stops depends on `work` alone. Call it again only after out_of_work.
  [[nodiscard]] TreeOutcome search(std::int64_t& work);

  /// Precondition: the search has found a packing.
  [[nodiscard]] BlockOffsets packing() const;

 private:
  using Index = std::int32_t;

  struct Block {
    std::int64_t size, height;
    Index rank;  // among the blocks of its part
    Index twin;  // the block like it that must be placed before, or -1
  };
  struct Section {
    std::int64_t floor;
    Index lowest;  // a block that is not placed, whose height is the floor
  };
  struct Turn {
    std::int64_t offset;
    Index rank;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  struct Part {
    Index begin, end;    // of open_
    StepRange sections;  // that they are live in
  };
  /// Where to choose a block of a part, and what the choice has led to.
  struct Level {
    Part part;
    Turn last;                     // of the latest choice here, at first of the level before
    std::int64_t highest;          // offset that leaves each section room for what is left
    Index block = -1;              // placed here
    bool covered = false;          // something is left to lie on it
    std::int64_t highest_top = 0;  // before the placement
    std::size_t heights = 0, floors = 0, ranks = 0;  // lengths of the trails before the placement
    std::size_t first_part = 0, next_part = 0, parts_end = 0;  // of parts_: what it left
  };
  template <typename Value>
  struct Change {
    Index index;
    Value before;
  };

  [[nodiscard]] TreeOutcome step();
  [[nodiscard]] bool choose(Level& level);
  [[nodiscard]] bool place(Level& level);
  [[nodiscard]] bool raise_above(Level& level, std::int64_t top);
  [[nodiscard]] bool holds_rest(Index section, std::int64_t offset);
  void count_open(Index block, int sign);
  void take_back(Level& level);
  void split(Level& level);
  void split_apart(Index begin, Index end);
  void enter(const Part& part, Turn last);
  void rank(const Part& part);

  const ArenaBlocks& problem_;
  const BlockSections& sections_;
  const BitTable& overlaps_;
  std::int64_t capacity_;
  Ranking ranking_;
  std::int64_t work_ = 0;

  std::vector<Block> block_;
  std::vector<std::int64_t> offset_;    // by block; of those that are placed
  BitTable is_open_;                    // one row: the blocks that are not placed
  std::vector<Index> open_, place_of_;  // those as a list, part by part, and where each is in it
  std::vector<Section> section_;
  std::vector<std::int64_t> unplaced_;  // by section: bytes of blocks that are not placed
  std::vector<Index> crossing_;         // by section: open blocks that reach from it over its end
  std::int64_t highest_top_ = 0;        // of what is placed

  std::vector<Change<std::int64_t>> heights_;
  std::vector<Change<Section>> floors_;
  std::vector<Change<Index>> ranks_;
  std::vector<Part> parts_;
  std::vector<Level> levels_;  // the first stands for the whole problem and places nothing
};

}  // namespace stowage
