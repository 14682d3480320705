// priced_bound: the least priced cost of a problem under fixed sides, less what the limits are
// worth at these prices: a lower bound on the cost of every placement within them.
//
// The network is built from the table of arcs in docs/planner.md ("Without a budget: one minimum
// cut"), with a node for every touch and every gap. Placements that keep a copy beside a reader on
// the CPU for nothing are left out: each costs at least as much as the same without that copy.
// Every capacity is rounded down and what the limits are worth is rounded up, so that the result is
// below the bound of the same prices, never above.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "planner/bounds/cut_network.hpp"
#include "planner/bounds/fixed_sides.hpp"
#include "planner/bounds/weighted_limit.hpp"

namespace stowage {

/// A rounded limit with its price.
struct PricedLimit {
  const WeightedLimit* limit = nullptr;
  double price = 0;
};

inline constexpr double no_placement = std::numeric_limits<double>::infinity();

/// A network and what is added to its cut, in units of 2^-exponent of the problem's costs.
struct PricedNetwork {
  CutNetwork network;
  __extension__ __int128 constant = 0;
  int exponent = 0;
};
/// Preconditions: as priced_bound's.
[[nodiscard]] PricedNetwork priced_network(const BoundProblem& problem, const FixedSides& sides,
                                           const std::vector<MemoryPrice>& prices,
                                           const std::vector<PricedLimit>& limits);

/// no_placement: none has these sides. nullopt: more work than allowed (as least_cut's).
/// Preconditions: prices are positive and finite, of steps of the problem; costs are finite and not
/// negative; bytes sum to less than 2^61.
[[nodiscard]] std::optional<double> priced_bound(const BoundProblem& problem,
                                                 const FixedSides& sides,
                                                 const std::vector<MemoryPrice>& prices,
                                                 const std::vector<PricedLimit>& limits,
                                                 std::int64_t& work);

}  // namespace stowage
