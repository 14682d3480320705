// cheapest_placement: the cheapest placement at given memory prices, by one minimum cut.
//
// Priced cost = cost (residency_problem.hpp) + the sum over steps of price * memory. All its terms
// have the form "pay if this is on the GPU and that is not", so its minimum is a minimum cut;
// docs/planner.md has the table of arcs and the proof. Capacities are integers, rounded down, in
// units of a power of two of a second, so that a bound made of them never exceeds the real minimum.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/problem/host_use.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/versions.hpp"
#include "planner/solve/min_cut.hpp"
#include "planner/solve/step_prices.hpp"

namespace stowage {

/// An item at a touch or, where `gap` is set, resident through a gap.
struct MemoryTerm {
  std::int32_t item = 0;
  std::int32_t index = 0;  ///< of the touch or the gap in the item
  bool gap = false;
  std::int32_t place = 0;  ///< the same, counted over all items
  std::int64_t weight = 0;
};
/// A further limit on what is on the GPU: the weights of the terms that are there sum to at most
/// `limit`.
struct LimitRow {
  std::vector<MemoryTerm> terms;
  std::int64_t limit = 0;
  RoundedLimit source = {};  ///< the limit that it was rounded from
};
/// The price of a unit of a row's weights, in StepPrice's unit. The row must outlive it.
struct RowPrice {
  const LimitRow* row = nullptr;
  std::int64_t price = 0;
};

/// The problem's pins, and the decisions of a branch of the search.
struct Restrictions {
  std::vector<Pin> device;               ///< by operation
  std::vector<std::vector<GapPin>> gap;  ///< by item, gap
};
[[nodiscard]] Restrictions restrictions_of(const ResidencyProblem& problem);

/// Data that all cuts of a problem share. The problem must outlive it.
struct CutModel {
  LaneWeights weights;  ///< each at most 1; cost_cap is that of weights of 1
  const ResidencyProblem* problem = nullptr;
  std::vector<Bytes> limits;                   ///< of GPU memory, by step
  HostLimits host;                             ///< of host memory
  std::vector<std::vector<Version>> versions;  ///< by item
  int unit_exponent = 0;                       ///< a capacity of 1 is 2^-unit_exponent seconds
  int price_bits = 0;                          ///< a price of 2^price_bits is one unit a byte
  Capacity cost_cap = 0;  ///< above any placement's cost; memory terms are capped at it

  static constexpr std::int64_t highest_price = std::int64_t{1} << 60;
  [[nodiscard]] double unit() const;        ///< seconds
  [[nodiscard]] double price_unit() const;  ///< seconds a byte: 2^-price_bits units
};
[[nodiscard]] CutModel make_cut_model(const ResidencyProblem& problem, std::vector<Bytes> limits,
                                      const HostLimits& host = {});

struct PricedCut {
  bool contradictory = false;  ///< no placement keeps to the restrictions; the rest is unset
  double value_seconds = 0;    ///< a lower bound on the least priced cost
  /// value_seconds minus price * limit: no placement within the limits and the restrictions costs
  /// less.
  double bound_seconds = 0;
  Placement least;     ///< the cheapest placement with the least on the GPU
  Placement greatest;  ///< the cheapest placement with the most on the GPU
};

/// The work of a cut (work_budget.hpp), by the size of its network where every gap has a node.
[[nodiscard]] std::int64_t work_of_cut(const CutModel& model);

/// Gaps that cover no priced step take no node. O(problem) and one maximum flow.
[[nodiscard]] PricedCut cheapest_placement(const CutModel& model, const Restrictions& restrictions,
                                           const Prices& prices,
                                           const std::vector<RowPrice>& rows = {},
                                           const HostPrices& host = {});

}  // namespace stowage
