// What branch and bound decides next, one way in one branch and the other way in the other.
#pragma once

#include <optional>
#include <vector>

#include "planner/solve/lagrangian.hpp"
#include "planner/solve/search_tree.hpp"

namespace stowage {

/// A branch after its dual was maximised. All must outlive the call alone.
struct BranchState {
  const ResidencyProblem& problem;
  const std::vector<PlacementColumn>& columns;
  const Dual& dual;
  const std::vector<const MemoryRow*>& rows;  ///< those that its prices are of
  const Restrictions& restrictions;
  const Placement& best;  ///< the best known of all branches
};

/// The largest storage that the mixture leaves in between; where it leaves nothing, the largest in
/// which it differs from the best placement; then the operations, likewise. Where the mixture is
/// that placement, and yet dearer than the bound: what the prices of steps and rows weigh most.
/// None: all that they weigh is decided, by the problem, by a branch, or because nothing else fits.
[[nodiscard]] std::optional<Decision> decision_between(const BranchState& branch);

}  // namespace stowage
