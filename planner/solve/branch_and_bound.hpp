// Branch and bound on the Lagrangian dual, with cutting planes: where one lump is what the bound
// misses, limits of single steps are rounded (memory_row.hpp), and then the largest storages that
// the dual's mixture of placements leaves in between are decided one way and the other.
#pragma once

#include <functional>
#include <vector>

#include "planner/certificate/certificate.hpp"
#include "planner/solve/lagrangian.hpp"
#include "planner/solve/placement_index.hpp"

namespace stowage {

struct BranchOptions {
  int most_cuts = 0;  ///< over all branches
  int most_cuts_a_branch = 20;
  double tolerance = 0;  ///< seconds, for each branch's dual
  /// The least cost known and its placement; asked again after every branch.
  std::function<double()> upper_bound;
  std::function<const Placement&()> best;
  /// Given every placement that a branch's cuts find, with its prices.
  std::function<void(const Placement&, const Prices&)> offer;
  /// Whether a bound is good enough to end with.
  std::function<bool(double)> enough;
  std::function<bool()> stop;
};

struct BranchResult {
  double bound_seconds = 0;  ///< no placement within the limits costs less
  int cuts = 0;
  BranchTree tree;  ///< the branches, with the prices that prove the bound
};

/// `root` is the dual of the root's restrictions and `columns` what it found. Best bound first;
/// deterministic where `stop` does not end it.
[[nodiscard]] BranchResult branch_and_bound(const CutModel& model, const PlacementIndex& index,
                                            const Restrictions& restrictions, const Dual& root,
                                            std::vector<PlacementColumn>& columns,
                                            const BranchOptions& options);

}  // namespace stowage
