// The Lagrangian dual: memory prices at which the cheapest placement's priced cost, minus the
// limits times the prices, is as high as possible. That value is a lower bound on any placement's
// cost.
//
// Maximised by cutting planes (Kelley 1960; in the primal, Dantzig and Wolfe's column generation):
// every placement seen is a line above the dual function. A small linear program over the few steps
// that matter gives the next prices, a minimum cut at these prices the next placement. The
// program's primal solution is a mixture of placements whose memory fits on average; branching
// decides the choices that the mixture takes only in part.
#pragma once

#include <vector>

#include "planner/problem/work_budget.hpp"
#include "planner/solve/packed_placement.hpp"
#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// A placement as the master program sees it.
struct PlacementColumn {
  PackedPlacement placement;
  double cost_seconds = 0;
  std::vector<double> memory;  ///< bytes, by step
};
[[nodiscard]] PlacementColumn column_of(const ResidencyProblem& problem,
                                        const Placement& placement);
/// Whether the restrictions allow the placement.
[[nodiscard]] bool keeps_to(const PackedPlacement& placement, const Restrictions& restrictions);

/// The prices at which a bound was found: of steps, and of DualOptions::rows.
struct Multipliers {
  Prices steps;
  std::vector<std::int64_t> rows =
      {};                ///< by row, at least 0; rows at the end that are left out: 0
  HostPrices host = {};  ///< where the model limits the host's memory
  bool operator==(const Multipliers&) const = default;
};

struct DualOptions {
  double upper_bound = 0;  ///< seconds: a dual above it need not be improved
  double tolerance = 0;    ///< seconds that the bound may stay below its maximum
  int most_cuts = 60;
  WorkBudget& work;  ///< no cut but the first is made once it is over
  /// Further limits that every placement of interest keeps to; priced beside the memory of steps.
  std::vector<const LimitRow*> rows = {};
};

struct Dual {
  double bound_seconds = 0;
  Multipliers prices;          ///< the prices of the bound
  std::vector<double> weight;  ///< of each column in the mixture; the sum is at most 1
  int cuts = 0;
  bool contradictory = false;  ///< the restrictions allow no placement
};

/// Starts from the prices `start` (empty: none) and appends the placements that it finds to
/// `columns`. If the model limits the host's memory, the bound is of placements within these limits
/// too.
[[nodiscard]] Dual maximise_dual(const CutModel& model, const Restrictions& restrictions,
                                 const Multipliers& start, std::vector<PlacementColumn>& columns,
                                 const DualOptions& options);

}  // namespace stowage
