// PlacementSearch: from any placement to a good one within the limits, by moves.
//
//   repair   at the step that exceeds its limit most, gives up what costs least a byte that is
//            needed there, until every step fits; where the host's memory has limits that are
//            exceeded (host_relief.hpp), takes back from it what costs least, by turns;
//   fill     takes back what saves most a (priced) byte and still fits;
//   improve  forces a change in, repairs and fills around it, and keeps it if the cost fell: the
//            ejection chains of Fiduccia and Mattheyses' tradition, one level deep.
//
// A move drops or keeps a gap, moves an operation with the gaps beside it, or takes another engine.
// Deterministic: effort is counted in moves looked at, never in seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/solve/placement_state.hpp"

namespace stowage {

class PlacementSearch {
 public:
  /// `prices` weigh the bytes that fill() spends; none: every byte weighs the same. `stop` is
  /// polled within every loop, however long; the model and its index must outlive the search.
  PlacementSearch(const CutModel& model, const PlacementIndex& index, const Placement& start,
                  const Prices& prices, std::int64_t effort, std::function<bool()> stop);

  /// False: the limits are out of reach, or it was stopped. Never adds memory at any step, but
  /// where the host has limits: the state then fits on the GPU even where the host's are out of
  /// reach.
  bool repair();
  /// Once stopped, what was taken back so far stays: the state fits at any time. Where the host's
  /// limits are exceeded they are by no more afterwards, and often by less.
  void fill();
  /// Precondition: the state fits.
  void improve();
  /// Turns a gap of the index over and makes the rest fit around it; false: not possible, and
  /// nothing has changed. The cost may have risen. Precondition: the state fits.
  bool turn(std::int32_t gap);
  /// Gives every operation the first of its fastest engines that still fits.
  void settle_engines();

  /// As PlacementState's.
  void price_host(const HostPrices& prices) { state_.price_host(prices); }

  [[nodiscard]] const PlacementState& state() const { return state_; }
  [[nodiscard]] std::int64_t effort_left() const { return effort_; }

 private:
  struct Move {
    enum class Kind : std::uint8_t { gap, copies, operation, engine } kind;
    std::int32_t index;       ///< of the gap, the operation
    std::int32_t detail = 0;  ///< copies: the item; engine: which
    Capacity cost = 0;        ///< added
    std::int64_t bytes = 0;   ///< given up, or taken, where it matters
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
  [[nodiscard]] bool is_brought_home(std::int32_t operation) const;
  /// By how much the host's limits are exceeded; 0: not at all.
  [[nodiscard]] std::int64_t beyond_host() const;
  /// On the GPU within its limits, and no more beyond the host's than that.
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
  std::function<bool()> stop_;
  int unpolled_ = 0;
  bool stopped_ = false;
  std::vector<std::int32_t> over_;    ///< gaps over the step that is relieved
  std::int32_t kept_gap_ = -1;        ///< not to be dropped, or not to be taken back
  std::int32_t kept_operation_ = -1;  ///< not to be moved
  std::vector<char> home_;  ///< by item: taken back from the host, not to be given up; or empty
};

/// What people do by hand: the GPU filled in order, operation by operation, while it fits.
[[nodiscard]] Placement filled_in_order(const CutModel& model, const PlacementIndex& index,
                                        const std::function<bool()>& stop);
/// Nothing resident but what is pinned so, every free operation on the CPU: the least memory at
/// every step.
[[nodiscard]] Placement nothing_resident(const ResidencyProblem& problem);
[[nodiscard]] inline Placement nothing_resident(const CutModel& model) {
  return nothing_resident(*model.problem);
}

}  // namespace stowage
