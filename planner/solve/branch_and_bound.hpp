// Branch and bound on the Lagrangian dual, with cutting planes.
//
// Where the bound misses the cost because one large item does not fit, limits of single steps are
// rounded first (memory_row.hpp). Then the largest storages that the dual's mixture of placements
// keeps only in part are decided, one way in one branch and the other way in the other.
#pragma once

#include <functional>
#include <vector>

#include "planner/certificate/certificate.hpp"
#include "planner/solve/lagrangian.hpp"
#include "planner/solve/placement_index.hpp"

namespace stowage {

struct BranchOptions {
  int most_cuts = 0;  ///< for all branches together
  int most_cuts_a_branch = 20;
  double tolerance = 0;  ///< seconds, for the dual of each branch
  /// The least cost known and its placement; asked for again after every branch.
  std::function<double()> upper_bound;
  std::function<const Placement&()> best;
  /// Called with every placement that a branch's cuts find, and its prices.
  std::function<void(const Placement&, const Prices&)> offer;
  /// Whether a bound is good enough to end with.
  std::function<bool(double)> enough;
  WorkBudget& work;
};

struct BranchResult {
  double bound_seconds = 0;  ///< no placement within the limits costs less
  int cuts = 0;
  BranchTree tree;  ///< the branches, with the prices that prove the bound
};

/// `root` is the dual under `restrictions`, `columns` the placements that it found. The branch with
/// the lowest bound is searched first. Deterministic.
[[nodiscard]] BranchResult branch_and_bound(const CutModel& model, const PlacementIndex& index,
                                            const Restrictions& restrictions, const Dual& root,
                                            std::vector<PlacementColumn>& columns,
                                            const BranchOptions& options);

}  // namespace stowage
