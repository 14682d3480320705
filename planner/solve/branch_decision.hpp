// decision_between: what branch and bound decides next, one way in one branch and the other way in
// the other.
#pragma once

#include <optional>
#include <vector>

#include "planner/solve/lagrangian.hpp"
#include "planner/solve/search_tree.hpp"

namespace stowage {

/// A branch after its dual was maximised. All members must outlive the call.
struct BranchState {
  const ResidencyProblem& problem;
  const std::vector<PlacementColumn>& columns;
  const Dual& dual;
  const std::vector<const LimitRow*>& rows;  ///< the rows that its prices are of
  const Restrictions& restrictions;
  const Placement& best;  ///< the best placement known, of all branches
};

/// The next decision, by the first of these rules that finds one:
///   - the largest storage that the mixture keeps only in part, then such an operation;
///   - the largest storage, then an operation, in which the mixture differs from the best
///     placement;
///   - where the mixture is that placement and yet costs more than the bound: what the prices of
///     steps and rows weigh most.
/// None: all that has a weight is decided, by the problem, by a branch, or because nothing else
/// fits.
[[nodiscard]] std::optional<Decision> decision_between(const BranchState& branch);

}  // namespace stowage
