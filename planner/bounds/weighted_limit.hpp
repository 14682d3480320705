// WeightedLimit: a rounded limit, as the checker derives it from the step's own bytes.
//
// At a step each storage is there or not. The storages that are there for certain are taken off the
// limit. Of the others, with b bytes each, some are counted by their absence (1 = away) and the
// rest by their presence. They satisfy
//
//   sum over counted of b * absent  -  sum over the rest of b * present  >=  missing
//
// where `missing` is the bytes of the counted storages minus the memory that is left. Mixed-integer
// rounding with a divisor g replaces every coefficient by floor(b / g) * r + min(b mod g, r) and
// the right side by ceil(missing / g) * r, with r the rest of missing by g (g where there is none);
// negative coefficients round likewise. Every placement that satisfies the first inequality
// satisfies the second.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/bounds/fixed_sides.hpp"
#include "planner/certificate/certificate.hpp"

namespace stowage {

/// An item at a touch or in a gap, and its weight.
struct WeightedPlace {
  std::uint32_t item = 0;
  std::uint32_t index = 0;  ///< of the touch or the gap
  std::int64_t weight = 0;  ///< positive
  bool in_gap = false;
};

/// The weights of the places that are on the GPU sum to at most `limit`. No places: no limit.
struct WeightedLimit {
  std::vector<WeightedPlace> places;
  std::int64_t limit = 0;
};

/// Preconditions: the step is one of the problem's, the divisor is from 1 to 2^61, and
/// propagate_limit() returned true for the sides. O(touches).
[[nodiscard]] WeightedLimit rounded_by(const BoundProblem& problem, const FixedSides& sides,
                                       const RoundedLimit& rounding);

}  // namespace stowage
