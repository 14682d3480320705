// FixedSides: the sides that a branch has decided, and those that the memory limit then decides.
//
// At each step the memory that is taken for certain is added up: what the nodes that run on the GPU
// touch, and what is kept there through the step. Whatever does not fit beside that is not on the
// GPU. This follows for every placement within the limit, so no plan is lost.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/bounds/bound_problem.hpp"

namespace stowage {

/// The sides of the gaps by item and gap, a byte each: the walk through a branching keeps a copy
/// for every branch that it has still to visit.
class GapSides {
 public:
  GapSides() = default;
  /// As the problem has them.
  explicit GapSides(const BoundProblem& problem);

  [[nodiscard]] std::span<Side> operator[](std::size_t item) {
    return std::span(sides_).subspan((*begins_)[item], (*begins_)[item + 1] - (*begins_)[item]);
  }
  [[nodiscard]] std::span<const Side> operator[](std::size_t item) const {
    return std::span(sides_).subspan((*begins_)[item], (*begins_)[item + 1] - (*begins_)[item]);
  }

 private:
  std::shared_ptr<const std::vector<std::size_t>> begins_;  // by item, and the end of the last
  std::vector<Side> sides_;
};

struct FixedSides {
  std::vector<Side> nodes;  ///< by node
  GapSides gaps;
};

/// The sides that the problem itself fixes.
[[nodiscard]] FixedSides sides_of(const BoundProblem& problem);

/// Propagates the limit into `sides` until nothing more follows. False: no placement within the
/// limit has these sides. O(problem * log steps) for each of a few passes.
[[nodiscard]] bool propagate_limit(const BoundProblem& problem, FixedSides& sides);

}  // namespace stowage
