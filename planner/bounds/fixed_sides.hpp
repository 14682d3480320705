// FixedSides: what a branch has decided, and what the limit on memory decides with it.
//
// At each step what is on the GPU for certain is added up: what the nodes that run there touch,
// what is kept through the step. Whatever does not fit beside that is not there. This follows for
// every placement within the limit, so that no plan is lost.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/bounds/bound_problem.hpp"

namespace stowage {

struct FixedSides {
  std::vector<Side> nodes;              ///< by node
  std::vector<std::vector<Side>> gaps;  ///< by item, gap
};

/// The problem's own.
[[nodiscard]] FixedSides sides_of(const BoundProblem& problem);

/// Until nothing more follows. False: no placement has these sides within the limit.
/// O(problem * log steps) a pass; a handful of passes.
[[nodiscard]] bool conclude(const BoundProblem& problem, FixedSides& sides);

}  // namespace stowage
