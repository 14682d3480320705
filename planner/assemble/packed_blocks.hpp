// PackedBlocks: a placement and the offsets of its blocks, changed together.
//
// A block goes to the place that costs least to free. Of the blocks that overlap a range of
// addresses of its size during its life, some can move to free places, and some can leave the GPU
// meanwhile, at the cost of their copies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/solve/placement_state.hpp"

namespace stowage {

/// One request of a placement's kept_claims (arena_claims.hpp), in the arena's granules.
struct ArenaBlock {
  std::int32_t item = -1;  ///< -1: the block of a temporary or of a workspace
  std::vector<StepRange> live;
  std::int64_t size = 0;
  std::int64_t offset = -1;  ///< -1: it has no place
  /// Since it was placed. Such a block makes no other block move, so that the search ends.
  bool has_moved = false;

  [[nodiscard]] bool is_placed() const { return offset >= 0; }
  [[nodiscard]] std::int64_t end() const { return offset + size; }
  [[nodiscard]] bool is_live(std::int32_t step) const;
};

class PackedBlocks {
 public:
  /// No block has a place yet. Step and problem must outlive it.
  PackedBlocks(const SizedStep& step, const ResidencyProblem& problem, const Placement& placement,
               GpuBudget budget);

  [[nodiscard]] const std::vector<ArenaBlock>& all() const { return blocks_; }
  [[nodiscard]] Placement placement() const { return state_.placement(); }
  [[nodiscard]] double cost_seconds() const { return state_.cost_seconds(); }
  /// The number of comparisons of blocks so far.
  [[nodiscard]] std::int64_t work() const { return work_; }
  [[nodiscard]] std::optional<std::size_t> largest_without_place() const;

  /// Places a block. A block that would end above the budget gets no place.
  void place(std::size_t block, std::int64_t offset);
  /// Places a block where that costs least, or drops the cheapest of its own gaps where that costs
  /// less. Other blocks may have no place afterwards. False: not possible at any cost.
  bool place_cheapest(std::size_t block);
  /// Keeps dropped gaps again where that saves more than the new places of their blocks cost.
  /// Returns how many. Every block has a place before and afterwards. Ends when work() is above
  /// `most`.
  int fill(std::int64_t most);

 private:
  struct Obstacle;
  struct Window;
  using Ranges = std::vector<StepRange>;

  void rebuild_blocks();
  [[nodiscard]] std::vector<Obstacle> obstacles(const Ranges& live, bool may_move,
                                                std::int32_t item);
  [[nodiscard]] std::vector<std::size_t> gaps_during(const ArenaBlock& block,
                                                     const Ranges& steps) const;
  [[nodiscard]] double price_of_absence(const ArenaBlock& block, const Ranges& steps);
  [[nodiscard]] std::array<std::int64_t, 2> free_places(std::size_t index) const;
  [[nodiscard]] Window cheapest_window(std::int64_t size, const std::vector<Obstacle>& obstacles);
  [[nodiscard]] std::pair<double, std::size_t> cheapest_own_gap(const ArenaBlock& block);
  [[nodiscard]] std::vector<std::size_t> clear_window(std::int64_t begin, std::int64_t end,
                                                      const Ranges& live,
                                                      const std::vector<Obstacle>& obstacles);
  bool restore_gap(std::size_t gap);
  [[nodiscard]] double in_seconds(Capacity units) const;

  const SizedStep& step_;
  const ResidencyProblem& problem_;
  std::int64_t budget_;
  CutModel model_;
  PlacementIndex index_;
  PlacementState state_;
  std::vector<ArenaBlock> blocks_;
  std::vector<std::size_t> by_offset_;  // blocks with a place
  std::int64_t work_ = 0;
};

}  // namespace stowage
