// HostLedger: the host memory that a placement takes, updated move by move.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/problem/host_use.hpp"
#include "planner/solve/residency_cut.hpp"
#include "planner/solve/step_profile.hpp"

namespace stowage {

/// A step and one of the host's two limits: pinned memory, or all memory.
struct HostPlace {
  bool pinned = false;
  std::int32_t step = 0;
};

class HostLedger {
 public:
  /// Starts with nothing on the host. The model must outlive it.
  explicit HostLedger(const CutModel& model);

  /// Replaces the stay of an item. O(ranges * log steps).
  void set(std::int32_t item, HostStay stay);
  [[nodiscard]] const HostStay& stay(std::int32_t item) const {
    return stays_[static_cast<std::size_t>(item)];
  }
  /// Adds the temporaries of an operation that runs on the CPU now, or removes them.
  void set_temporaries(std::int32_t operation, bool on_cpu);

  /// The largest excess over a limit at any step; not positive: the host holds everything.
  [[nodiscard]] std::int64_t excess() const;
  [[nodiscard]] HostPlace worst() const;
  [[nodiscard]] std::int64_t excess_at(HostPlace place) const {
    return (place.pinned ? pinned_ : all_).at(place.step);
  }
  [[nodiscard]] bool is_at(std::int32_t item, HostPlace place) const;

  /// Sets the prices that cost() uses; empty: nothing costs anything.
  void set_prices(const HostPrices& prices);
  [[nodiscard]] bool is_priced() const { return prices_.has_value(); }
  /// What a stay of the item costs, in CutModel::unit(). Precondition: is_priced().
  [[nodiscard]] Capacity cost(std::int32_t item, const HostStay& stay) const;

 private:
  void add(std::int32_t item, StepRange range, bool crosses, std::int64_t sign);

  const CutModel& model_;
  std::vector<HostStay> stays_;  ///< by item
  StepProfile pinned_, all_;     ///< use minus the limit
  struct PricesOfBoth {
    PriceSums<double> all, pinned;
  };
  std::optional<PricesOfBoth> prices_;
};

}  // namespace stowage
