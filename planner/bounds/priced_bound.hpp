// priced_bound: the least priced cost of a problem under fixed sides, minus the limits times their
// prices: a lower bound on the cost of every placement within the limits.
//
// The network is built from the table of arcs in docs/planner.md ("Without a budget: one minimum
// cut"), with a node for every touch and every gap. Placements with a copy beside a reader on the
// CPU that no use needs are left out: each costs at least as much as the same placement without
// that copy. Every capacity is rounded down and the limits times their prices are rounded up, so
// the result is never above the bound of the same prices.
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

/// A network and a constant that is added to its cut, in units of 2^-exponent of the problem's
/// costs.
struct BoundNetwork {
  CutNetwork network;
  __extension__ __int128 constant = 0;
  int exponent = 0;
};
/// Preconditions: as priced_bound's.
[[nodiscard]] BoundNetwork priced_network(const BoundProblem& problem, const FixedSides& sides,
                                          const std::vector<MemoryPrice>& prices,
                                          const std::vector<PricedLimit>& limits);

/// no_placement: no placement has these sides. nullopt: `work` was too little (as in least_cut).
/// Preconditions: prices are positive and finite, of steps of the problem; costs are finite and not
/// negative; bytes sum to less than 2^61.
[[nodiscard]] std::optional<double> priced_bound(const BoundProblem& problem,
                                                 const FixedSides& sides,
                                                 const std::vector<MemoryPrice>& prices,
                                                 const std::vector<PricedLimit>& limits,
                                                 std::int64_t& work);

}  // namespace stowage
