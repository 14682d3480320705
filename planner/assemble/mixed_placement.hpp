// A placement between two others: part of the operations as in the one, part as in the other.
//
// Identical layers cost the same, so a cut puts all of them on the CPU or streams all of their
// weights to the GPU, whatever its lanes' weights. The step is shortest in between: where the CPU
// runs some layers while the link brings the weights of the next ones. Which layers does not
// matter for the sums, but they have to take turns.
#pragma once

#include <optional>

#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct Mixture {
  double share = 0.5;  ///< of what the two do not agree on, from the first; in seconds on the CPU
  int parts = 8;       ///< so many stretches of the step, each from one of the two, take turns
};

/// Operations that the two place on one side stay there. An item goes with the operations that
/// touch it; between operations of both it is only kept on the GPU where both keep it. nullopt:
/// they agree on every operation, or the mixture is no placement. Both are consistent. Linear.
[[nodiscard]] std::optional<Placement> mixed_placement(const ResidencyProblem& problem,
                                                       const Placement& first,
                                                       const Placement& second,
                                                       const Mixture& mixture);

}  // namespace stowage
