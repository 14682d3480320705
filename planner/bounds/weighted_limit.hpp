// WeightedLimit: a rounded limit as the checker derives it from the step's own bytes.
//
// At a step each storage is there or not. What is there for certain is taken off the limit; of the
// others, with b bytes each, those that are counted by their absence (1 = away) and the rest by
// their presence satisfy
//
//   sum over counted of b * absent  -  sum over the rest of b * present  >=  missing
//
// where `missing` is what the counted ones exceed the room by. Mixed-integer rounding with a
// divisor g replaces every coefficient by floor(b / g) * r + min(b mod g, r) and the right side by
// ceil(missing / g) * r, with r the rest of missing by g (g where there is none); negative
// coefficients round likewise. Every placement that satisfied the one satisfies the other.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/bounds/fixed_sides.hpp"
#include "planner/certificate/certificate.hpp"

namespace stowage {

/// An item at a touch, or through a gap.
struct WeightedPlace {
  std::size_t item = 0;
  std::size_t index = 0;  ///< of the touch or the gap
  bool in_gap = false;
  std::int64_t weight = 0;  ///< positive
};

/// The weights of what is on the GPU sum to at most `limit`. No places: it says nothing.
struct WeightedLimit {
  std::vector<WeightedPlace> places;
  std::int64_t limit = 0;
};

/// Precondition: the step is one of the problem's, the divisor from 1 to 2^61, and conclude() has
/// passed the sides. O(touches).
[[nodiscard]] WeightedLimit rounded_by(const BoundProblem& problem, const FixedSides& sides,
                                       const RoundedLimit& rounding);

}  // namespace stowage
