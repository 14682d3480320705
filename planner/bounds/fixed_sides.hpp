// FixedSides: the sides that a branch has decided, and those that the memory limit then decides.
//
// At each step the memory that is taken for certain is added up: what the nodes that run on the GPU
// touch, and what is kept there through the step. Whatever does not fit beside that is not on the
// GPU. This follows for every placement within the limit, so no plan is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/bounds/bound_problem.hpp"

namespace stowage {

struct FixedSides {
  std::vector<Side> nodes;              ///< by node
  std::vector<std::vector<Side>> gaps;  ///< by item, gap
};

/// The sides that the problem itself fixes.
[[nodiscard]] FixedSides sides_of(const BoundProblem& problem);

/// Propagates the limit into `sides` until nothing more follows. False: no placement within the
/// limit has these sides. O(problem * log steps) for each of a few passes.
[[nodiscard]] bool propagate_limit(const BoundProblem& problem, FixedSides& sides);

}  // namespace stowage
