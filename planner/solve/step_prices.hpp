// Prices of a byte of memory by step, and their sums over ranges of steps.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem/versions.hpp"

namespace stowage {

/// The price of a byte at a step, in CutModel::price_unit() seconds.
struct StepPrice {
  std::int32_t step = 0;
  std::int64_t price = 0;
  bool operator==(const StepPrice&) const = default;
};
using Prices = std::vector<StepPrice>;  ///< ascending steps, positive prices

/// Prices of a byte on the host by step: of any byte, and of a pinned byte beside that.
struct HostPrices {
  Prices all, pinned;
  [[nodiscard]] bool empty() const { return all.empty() && pinned.empty(); }
  bool operator==(const HostPrices&) const = default;
};

/// Sums of prices over ranges of a problem's steps, O(1) each. Exact in 128-bit integers; in
/// floating point for values that are only compared.
template <typename Number>
class PriceSums {
 public:
  PriceSums(const Prices& prices, std::size_t steps) : before_(steps + 1, 0) {
    for (const StepPrice& p : prices) {
      before_[static_cast<std::size_t>(p.step) + 1] = static_cast<Number>(p.price);
    }
    for (std::size_t t = 1; t < before_.size(); ++t) before_[t] += before_[t - 1];
  }

  [[nodiscard]] Number in(StepRange steps) const {
    if (steps.empty()) return 0;
    return before_[static_cast<std::size_t>(steps.end)] -
           before_[static_cast<std::size_t>(steps.begin)];
  }
  [[nodiscard]] Number in(const GapSteps& gap) const { return in(gap.within) + in(gap.wrapped); }
  [[nodiscard]] Number total() const { return before_.back(); }

 private:
  std::vector<Number> before_;  // by step: the prices of those before it
};

}  // namespace stowage
