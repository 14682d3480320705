// ResidencyCut: the cheapest placement at given memory prices, by one minimum cut.
//
// Priced cost = cost (residency_problem.hpp) + the sum over steps of price * memory. It has no term
// but "pay if this is on the GPU and that is not", so its minimum is a minimum cut; docs/planner.md
// has the table of arcs and the proof. Capacities are integers, rounded down, in units of a power
// of two of a second, so that a bound made of them never exceeds the real minimum.
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

/// An item at a touch or, `gap`, resident through a gap.
struct MemoryTerm {
  std::int32_t item = 0;
  std::int32_t index = 0;  ///< of the touch or the gap in the item
  bool gap = false;
  std::int32_t place = 0;  ///< the same, counted over all items
  std::int64_t weight = 0;
};
/// Another limit on what is on the GPU: the weights of the terms that are there sum to at most it.
struct MemoryRow {
  std::vector<MemoryTerm> terms;
  std::int64_t limit = 0;
  RoundedLimit source = {};  ///< what it was rounded from
};
/// A price of a row's unit, like a byte's in StepPrice. The row must outlive it.
struct RowPrice {
  const MemoryRow* row = nullptr;
  std::int64_t price = 0;
};

/// The problem's own pins, and what a branch of the search has decided beyond them.
struct Restrictions {
  std::vector<Pin> device;               ///< by operation
  std::vector<std::vector<GapPin>> gap;  ///< by item, gap
};
[[nodiscard]] Restrictions restrictions_of(const ResidencyProblem& problem);

/// What all cuts of a problem share. The problem must outlive it.
struct CutModel {
  LaneWeights weights;  ///< each at most 1; the dearest placement is that of weights of 1
  const ResidencyProblem* problem = nullptr;
  std::vector<Bytes> limits;                   ///< of memory, by step
  HostLimits host;                             ///< of the host's
  std::vector<std::vector<Version>> versions;  ///< by item
  int unit_exponent = 0;                       ///< a capacity of 1 is 2^-unit_exponent seconds
  int price_bits = 0;                          ///< and a price of 2^price_bits is one a byte
  Capacity dearest = 0;  ///< above any placement's cost; a memory term is capped at it

  static constexpr std::int64_t highest_price = std::int64_t{1} << 60;
  [[nodiscard]] double unit() const;        ///< seconds
  [[nodiscard]] double price_unit() const;  ///< seconds a byte: 2^-price_bits units
};
[[nodiscard]] CutModel make_cut_model(const ResidencyProblem& problem, std::vector<Bytes> limits,
                                      const HostLimits& host = {});

struct PricedCut {
  bool contradictory = false;  ///< no placement keeps to the restrictions; the rest says nothing
  double value_seconds = 0;    ///< the least priced cost, from below
  double bound_seconds = 0;    ///< value less price * limit: no placement within the limits and the
                               ///< restrictions costs less
  Placement least;             ///< with the least on the GPU among the cheapest
  Placement greatest;          ///< with the most
};

/// O(problem) and one maximum flow. Gaps that cover no priced step take no node.
[[nodiscard]] PricedCut cheapest_placement(const CutModel& model, const Restrictions& restrictions,
                                           const Prices& prices,
                                           const std::vector<RowPrice>& rows = {},
                                           const HostPrices& host = {});

}  // namespace stowage
