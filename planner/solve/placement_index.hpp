// PlacementIndex: look-up tables of a problem, made once for all searches of a model.
//
// Lists by operation are flat: the entries of operation v lie in [first[v], first[v + 1]).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem/versions.hpp"
#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// A gap of an item.
struct GapPlace {
  std::int32_t item = 0;
  std::int32_t gap = 0;
  GapSteps inside;
};

struct TouchPlace {
  std::int32_t item = 0;
  std::int32_t touch = 0;
};

class PlacementIndex {
 public:
  explicit PlacementIndex(const CutModel& model);

  /// The gaps of all items, item by item.
  [[nodiscard]] const std::vector<GapPlace>& gaps() const { return gaps_; }
  /// The index in gaps() of an item's first gap.
  [[nodiscard]] std::int32_t first_gap(std::int32_t item) const {
    return first_gap_[static_cast<std::size_t>(item)];
  }
  /// The number of an item's first touch, where touches are counted item by item.
  [[nodiscard]] std::int32_t first_touch(std::int32_t item) const {
    return first_touch_of_item_[static_cast<std::size_t>(item)];
  }
  [[nodiscard]] std::span<const TouchPlace> touches_of(std::int32_t operation) const {
    return part(touches_, first_touch_, operation);
  }
  /// The gaps that lead to or from the operation's touches, as indices into gaps().
  [[nodiscard]] std::span<const std::int32_t> gaps_beside(std::int32_t operation) const {
    return part(beside_, first_beside_, operation);
  }
  /// The gaps that strictly contain the step, as ascending indices into gaps(). O(their number +
  /// log steps), and a sort.
  void gaps_over(std::int32_t step, std::vector<std::int32_t>& places) const;

  /// In CutModel::unit().
  [[nodiscard]] Capacity h2d(std::int32_t item) const { return h2d_[at(item)]; }
  [[nodiscard]] Capacity d2h(std::int32_t item) const { return d2h_[at(item)]; }
  [[nodiscard]] Capacity cpu_cost(std::int32_t operation) const { return cpu_cost_[at(operation)]; }
  [[nodiscard]] Capacity gpu_cost(std::int32_t operation, std::int32_t engine) const {
    return engine_cost_[at(first_engine_[at(operation)] + engine)];
  }

 private:
  static std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }
  template <typename T>
  static std::span<const T> part(const std::vector<T>& all, const std::vector<std::int32_t>& first,
                                 std::int32_t i) {
    return std::span(all).subspan(at(first[at(i)]), at(first[at(i) + 1] - first[at(i)]));
  }
  void index_operations(const CutModel& model);
  void index_steps(std::int32_t steps);

  std::vector<GapPlace> gaps_;
  std::vector<std::int32_t> first_gap_, first_touch_of_item_;  ///< by item
  std::vector<TouchPlace> touches_;                            ///< by operation
  std::vector<std::int32_t> first_touch_;
  std::vector<std::int32_t> beside_;  ///< by operation
  std::vector<std::int32_t> first_beside_;
  std::vector<Capacity> h2d_, d2h_, cpu_cost_, engine_cost_;
  std::vector<std::int32_t> first_engine_;
  // A segment tree over the steps: a gap is stored at the few nodes that make up the steps inside
  // it.
  std::int32_t width_ = 1;
  std::vector<std::int32_t> over_;        ///< by node
  std::vector<std::int32_t> first_over_;  ///< node 1 is the root
};

}  // namespace stowage
