// HostLedger: what a placement that changes move by move takes of the host's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/problem/host_use.hpp"
#include "planner/solve/residency_cut.hpp"
#include "planner/solve/step_profile.hpp"

namespace stowage {

/// One of the two limits at a step.
struct HostPlace {
  bool pinned = false;
  std::int32_t step = 0;
};

class HostLedger {
 public:
  /// Of a placement that has nothing on the host. The model must outlive it.
  explicit HostLedger(const CutModel& model);

  /// In the place of what was known of the item. O(ranges * log steps).
  void set(std::int32_t item, HostStay stay);
  [[nodiscard]] const HostStay& stay(std::int32_t item) const {
    return stays_[static_cast<std::size_t>(item)];
  }
  /// The temporaries of an operation that runs on the CPU, or does no longer.
  void set_temporaries(std::int32_t operation, bool on_cpu);

  /// By how much the host's limits are exceeded at most; not positive: the host holds it.
  [[nodiscard]] std::int64_t excess() const;
  [[nodiscard]] HostPlace worst() const;
  [[nodiscard]] std::int64_t excess_at(HostPlace place) const {
    return (place.pinned ? pinned_ : all_).at(place.step);
  }
  [[nodiscard]] bool is_at(std::int32_t item, HostPlace place) const;

  /// From now on; none: nothing costs anything.
  void set_prices(const HostPrices& prices);
  [[nodiscard]] bool is_priced() const { return prices_.has_value(); }
  /// What a stay of the item costs, in CutModel::unit(). Precondition: is_priced().
  [[nodiscard]] Capacity cost(std::int32_t item, const HostStay& stay) const;

 private:
  void add(std::int32_t item, StepRange range, bool crosses, std::int64_t sign);

  const CutModel& model_;
  std::vector<HostStay> stays_;  ///< by item
  StepProfile pinned_, all_;     ///< use less the limit
  struct PricesOfBoth {
    PriceSums<double> all, pinned;
  };
  std::optional<PricesOfBoth> prices_;
};

}  // namespace stowage
