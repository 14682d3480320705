// The Lagrangian dual: memory prices under which the cheapest placement's priced cost, less what
// the limits are worth, is as high as it gets. That value is a lower bound on any placement's cost.
//
// Maximised by cutting planes (Kelley 1960; in the primal, Dantzig and Wolfe's column generation):
// every placement seen is a line above the dual function; a small linear program over the few steps
// that matter gives the next prices, a minimum cut at these the next placement. The program's
// primal solution is a mixture of placements whose memory fits on average: where its weights are
// not 0 or 1 is what branching decides.
#pragma once

#include <functional>
#include <vector>

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
/// Whether the placement is one that the restrictions allow.
[[nodiscard]] bool keeps_to(const PackedPlacement& placement, const Restrictions& restrictions);

/// The prices at which a bound was found: of steps, and of the rows in DualOptions.
struct Multipliers {
  Prices steps;
  std::vector<std::int64_t> rows = {};  ///< 0 or more; by row, the last ones left out: 0
  HostPrices host = {};                 ///< where the model limits the host's memory
  bool operator==(const Multipliers&) const = default;
};

struct DualOptions {
  double upper_bound = 0;  ///< seconds: the dual is of no interest above it
  double tolerance = 0;    ///< seconds: how far below its maximum the bound may stay
  int most_cuts = 60;
  std::function<bool()> stop;  ///< polled before each cut
  /// Other limits that every placement of interest keeps to; priced beside the steps' memory.
  std::vector<const MemoryRow*> rows = {};
};

struct Dual {
  double bound_seconds = 0;
  Multipliers prices;          ///< at which the bound was found
  std::vector<double> weight;  ///< of `columns`, the mixture; sums to at most 1
  int cuts = 0;
  bool contradictory = false;  ///< the restrictions allow no placement
};

/// A model that limits the host's memory has these limits in its bound, too.
/// Starts from `start` (empty: no prices) and appends the placements that it finds to `columns`.
[[nodiscard]] Dual maximise_dual(const CutModel& model, const Restrictions& restrictions,
                                 const Multipliers& start, std::vector<PlacementColumn>& columns,
                                 const DualOptions& options);

}  // namespace stowage
