// PlacementSearch: turns any placement into a good one within the limits, by moves.
//
//   repair   at the step that exceeds its limit most, drops what costs least for a byte that is
//            needed there, until every step fits. Where limits of the host's memory are exceeded
//            (host_relief.hpp), it alternates with moves that lower host memory;
//   fill     keeps again what saves most for a (priced) byte and still fits;
//   improve  forces one change, repairs and fills around it, and keeps it if the cost fell: the
//            ejection chains of Fiduccia and Mattheyses' tradition, one level deep.
//
// A move drops or keeps a gap, moves an operation with the gaps beside it, or takes another engine.
// Effort is counted in moves looked at; every move is charged to the budget of the search as well.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/work_budget.hpp"
#include "planner/solve/placement_state.hpp"

namespace stowage {

class PlacementSearch {
 public:
  /// `prices` weigh the bytes that fill() spends; without prices every byte weighs the same. Every
  /// loop ends where `work` is over. The model, its index and `work` must outlive the search.
  PlacementSearch(const CutModel& model, const PlacementIndex& index, const Placement& start,
                  const Prices& prices, std::int64_t effort, WorkBudget& work);

  /// False: the limits are out of reach, or the work is over. Adds no memory at any step, unless
  /// the host has limits. Then the state fits on the GPU even where the limits of the host are out
  /// of reach.
  bool repair();
  /// Fits at any time, so that what was added so far is kept where the work is over. Never raises
  /// the excess over the host's limits, and often lowers it.
  void fill();
  /// Precondition: the state fits.
  void improve();
  /// Drops a gap that is resident, or keeps one that is dropped, and makes the rest fit around it.
  /// The cost may rise. False: not possible, and nothing has changed. Precondition: the state fits.
  bool flip_gap(std::int32_t gap);
  /// Gives every operation the first of its fastest engines that still fits.
  void settle_engines();

  /// As PlacementState::price_host.
  void price_host(const HostPrices& prices) { state_.price_host(prices); }

  [[nodiscard]] const PlacementState& state() const { return state_; }
  [[nodiscard]] std::int64_t effort_left() const { return effort_; }

 private:
  struct Move {
    enum class Kind : std::uint8_t { gap, copies, operation, engine } kind;
    std::int32_t index;       ///< of the gap, the operation
    std::int32_t detail = 0;  ///< copies: the item; engine: which
    Capacity cost = 0;        ///< what it adds to the cost
    std::int64_t bytes = 0;   ///< what it frees or takes at the step, where that matters
  };
  [[nodiscard]] bool movable(std::int32_t operation) const;
  [[nodiscard]] double weight(const GapPlace& gap) const;
  void relief_by_gaps(std::int32_t step, std::vector<Move>& moves);
  void relief_by_operations(std::int32_t step, std::vector<Move>& moves);
  void relief_by_engines(std::int32_t step, std::vector<Move>& moves);
  void measure(std::int32_t step, Move move, std::vector<Move>& moves);
  bool apply(const Move& move);
  bool relieve(std::int32_t step);
  bool repair_on_gpu();
  bool repair_on_both_sides();
  [[nodiscard]] bool is_kept_on_gpu(std::int32_t operation) const;
  /// The excess over the host's limits; 0: they are kept.
  [[nodiscard]] std::int64_t beyond_host() const;
  /// Whether the GPU's limits are kept and the excess over the host's limits is at most `beyond`.
  [[nodiscard]] bool is_within(std::int64_t beyond) const;
  bool fill_gaps();
  bool fill_operations();
  bool try_on_gpu(std::int32_t operation);
  bool keep_if_cheaper(std::size_t mark, Capacity before);
  bool eject_for_gap(std::int32_t gap);
  bool eject_for_operation(std::int32_t operation);
  bool spend(std::int64_t moves);
  bool stopped();

  const ResidencyProblem& problem_;
  const PlacementIndex& index_;
  PlacementState state_;
  PriceSums<double> prices_;
  std::vector<std::int32_t> free_operations_;
  std::int64_t effort_;
  WorkBudget& work_;
  int unpolled_ = 0;
  bool stopped_ = false;
  std::vector<std::int32_t> over_;    ///< gaps over the step whose memory is lowered
  std::int32_t kept_gap_ = -1;        ///< a gap that may not be changed; -1: none
  std::int32_t kept_operation_ = -1;  ///< an operation that may not be moved; -1: none
  std::vector<char> kept_on_gpu_;     ///< by item: may not leave the GPU; empty: all may
};

/// The placement that people make by hand: the GPU is filled in order, operation by operation, as
/// long as it fits.
[[nodiscard]] Placement filled_in_order(const CutModel& model, const PlacementIndex& index,
                                        WorkBudget& work);
/// Only pinned gaps are resident, and every free operation runs on the CPU: the least memory at
/// every step.
[[nodiscard]] Placement nothing_resident(const ResidencyProblem& problem);
[[nodiscard]] inline Placement nothing_resident(const CutModel& model) {
  return nothing_resident(*model.problem);
}

}  // namespace stowage
