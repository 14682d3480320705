// PackedBlocks: a placement and where its blocks lie, changed together.
//
// A block is put where what lies there costs least to give up. Of the blocks that overlap a window
// of its size during its life some can move to where there is room, some can leave the GPU
// meanwhile, at the price of their copies.
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

/// One request of a placement's kept_claims (arena_claims.hpp), in its granules.
struct ArenaBlock {
  std::int32_t item = -1;  ///< -1: a temporary's, a workspace's
  std::vector<StepRange> live;
  std::int64_t size = 0;
  std::int64_t offset = -1;  ///< -1: it has no place
  bool has_moved = false;    ///< since it was placed: it makes no others move, so that this ends

  [[nodiscard]] bool is_placed() const { return offset >= 0; }
  [[nodiscard]] std::int64_t end() const { return offset + size; }
  [[nodiscard]] bool is_live(std::int32_t step) const;
};

class PackedBlocks {
 public:
  /// Nothing has a place yet. Step and problem must outlive it.
  PackedBlocks(const SizedStep& step, const ResidencyProblem& problem, const Placement& placement,
               GpuBudget budget);

  [[nodiscard]] const std::vector<ArenaBlock>& all() const { return blocks_; }
  [[nodiscard]] Placement placement() const { return state_.placement(); }
  [[nodiscard]] double cost_seconds() const { return state_.cost_seconds(); }
  /// Blocks compared so far.
  [[nodiscard]] std::int64_t work() const { return work_; }
  [[nodiscard]] std::optional<std::size_t> largest_without_place() const;

  /// Above the budget a block has no place.
  void place(std::size_t block, std::int64_t offset);
  /// Finds a place for a block, or gives up the cheapest of its own gaps where that costs less.
  /// Others may be without a place then. False: there is none at any price.
  bool put(std::size_t block);
  /// Takes back gaps that save more than what their blocks' new places cost. Returns how many.
  /// Precondition: every block has a place; so it is afterwards. Ends when work() is above `most`.
  int fill(std::int64_t most);

 private:
  struct Obstacle;
  struct Window;
  using Ranges = std::vector<StepRange>;

  void read();
  [[nodiscard]] std::vector<Obstacle> obstacles(const Ranges& live, bool may_move,
                                                std::int32_t item);
  [[nodiscard]] std::vector<std::size_t> gaps_during(const ArenaBlock& block,
                                                     const Ranges& steps) const;
  [[nodiscard]] double price_of_absence(const ArenaBlock& block, const Ranges& steps);
  [[nodiscard]] std::array<std::int64_t, 2> other_places(std::size_t index) const;
  [[nodiscard]] Window cheapest_window(std::int64_t size, const std::vector<Obstacle>& obstacles);
  [[nodiscard]] std::pair<double, std::size_t> cheapest_own_gap(const ArenaBlock& block);
  [[nodiscard]] std::vector<std::size_t> clear(std::int64_t begin, std::int64_t end,
                                               const Ranges& live,
                                               const std::vector<Obstacle>& obstacles);
  bool take_back(std::size_t gap);
  [[nodiscard]] double in_seconds(Capacity units) const;

  const SizedStep& step_;
  const ResidencyProblem& problem_;
  std::int64_t budget_;
  CutModel model_;
  PlacementIndex index_;
  PlacementState state_;
  std::vector<ArenaBlock> blocks_;
  std::vector<std::size_t> by_offset_;  // those with a place
  std::int64_t work_ = 0;
};

}  // namespace stowage
