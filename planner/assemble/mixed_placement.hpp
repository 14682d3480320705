// mixed_placement: a placement between two others, with part of the operations as in the one and
// part as in the other.
//
// Identical layers cost the same, so a cut puts all of them on the CPU or streams all of their
// weights to the GPU, whatever the lanes' weights. The shortest step lies in between: the CPU runs
// some layers while the link brings the weights of the next ones. Which layers does not matter for
// the sums, but they have to alternate.
#pragma once

#include <optional>

#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct Mixture {
  double share = 0.5;  ///< of the differing operations, from the first; in seconds on the CPU
  int parts = 8;       ///< stretches of the step that alternate between the two
};

/// Operations that both place on the same side stay there. An item goes with the operations that
/// touch it; between operations from both placements it is kept on the GPU only if both keep it.
/// nullopt: the two agree on every operation, or the mixture is no placement. Precondition: both
/// are consistent. Linear.
[[nodiscard]] std::optional<Placement> mixed_placement(const ResidencyProblem& problem,
                                                       const Placement& first,
                                                       const Placement& second,
                                                       const Mixture& mixture);

}  // namespace stowage
