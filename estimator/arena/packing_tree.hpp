// Tree search for a packing within a capacity, complete if it is given enough work.
//
// In every packing the blocks can be moved down until each lies on another block or at offset 0.
// The search builds exactly these packings, placing the blocks by ascending offset:
//
//   height    of an unplaced block: its offset if it is placed next, the highest top among the
//             placed blocks that are live together with it
//   key       (offset, rank) of a placement. The keys of a packing's placements rise, so that each
//             packing is built in one order only; the rank decides between blocks at one height
//   section   see block_sections.hpp. A section's unplaced blocks lie above its floor, which is the
//             lowest height in it, and above the last key's offset. If their bytes from there on
//             exceed the capacity, the branch is abandoned
//   part      unplaced blocks that share sections with no unplaced block outside the part. If a
//             placement leaves several parts, each is solved by itself with a ranking of its own;
//             if one cannot be solved, the placement is undone
//
// Branches that are skipped because another one is at least as good:
//   - a block whose height leaves room for another unplaced block wholly below it,
//   - after a block on which no unplaced block can lie: all other choices in its place,
//   - of two blocks with equal sizes and lifetimes, placing the second before the first.
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
  infeasible,   ///< no packing fits the capacity
  out_of_work,  ///< not decided yet
};

/// One search, which can be interrupted and continued. Iterative: recursion would be as deep as
/// there are blocks. Memory: O(blocks + sections), plus an undo log of the current branch.
class PackingTree {
 public:
  /// The first three must outlive the search. At least one block.
  PackingTree(const ArenaBlocks& blocks, const BlockSections& sections, const BitTable& overlaps,
              std::int64_t capacity, const Ranking& ranking);

  /// Continues the search for about `work` steps (2 to 3 ns each) and subtracts the steps taken
  /// from it. Deterministic: where it stops depends on `work` alone. Call it again only after
  /// out_of_work.
  [[nodiscard]] TreeOutcome search(std::int64_t& work);

  /// Precondition: the search has found a packing.
  [[nodiscard]] BlockOffsets packing() const;

 private:
  using Index = std::int32_t;

  struct Block {
    std::int64_t size, height;
    Index rank;  // among the blocks of its part
    Index twin;  // the equal block that must be placed before it, or -1
  };
  struct Section {
    std::int64_t floor;
    Index lowest;  // an unplaced block whose height is the floor
  };
  struct PlacementKey {
    std::int64_t offset;
    Index rank;
    friend auto operator<=>(const PlacementKey&, const PlacementKey&) = default;
  };
  struct Part {
    Index begin, end;    // of open_
    StepRange sections;  // that they are live in
  };
  /// One level of the search tree: the part to choose a block from, the current choice, and what is
  /// needed to undo it.
  struct Level {
    Part part;
    PlacementKey last;             // of the latest choice here; at first that of the level above
    std::int64_t highest;          // largest offset that leaves each section room for the rest
    Index block = -1;              // placed here
    bool covered = false;          // an unplaced block can lie on it
    std::int64_t highest_top = 0;  // before the placement
    // Lengths of the undo logs before the placement.
    std::size_t heights = 0, floors = 0, ranks = 0;
    // Of parts_: the parts that the placement left.
    std::size_t first_part = 0, next_part = 0, parts_end = 0;
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
  [[nodiscard]] bool leaves_room(Index section, std::int64_t offset);
  void count_open(Index block, int sign);
  void undo(Level& level);
  void split(Level& level);
  void split_apart(Index begin, Index end);
  void enter(const Part& part, PlacementKey last);
  void rank(const Part& part);

  const ArenaBlocks& problem_;
  const BlockSections& sections_;
  const BitTable& overlaps_;
  std::int64_t capacity_;
  Ranking ranking_;
  std::int64_t work_ = 0;

  std::vector<Block> block_;
  std::vector<std::int64_t> offset_;  // by block; valid for placed ones
  BitTable is_open_;                  // one row: the unplaced blocks
  // The unplaced blocks as a list, part by part, and each one's place in it.
  std::vector<Index> open_, place_of_;
  std::vector<Section> section_;
  std::vector<std::int64_t> unplaced_;  // by section: bytes of unplaced blocks
  // By section: unplaced blocks that are live in it and in the next one.
  std::vector<Index> crossing_;
  std::int64_t highest_top_ = 0;  // of the placed blocks

  std::vector<Change<std::int64_t>> heights_;
  std::vector<Change<Section>> floors_;
  std::vector<Change<Index>> ranks_;
  std::vector<Part> parts_;
  std::vector<Level> levels_;  // the first is the whole problem and places no block
};

}  // namespace stowage
