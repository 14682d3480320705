// MemoryRow: a limit on what may be on the GPU at one step, sharper than its bytes.
//
// At a step each item is there or not, so its limit is a knapsack. A relaxation keeps 0.6 of an
// embedding; a plan keeps it or does not. Rounding (Gomory 1960; Marchand and Wolsey 2001) turns
// the step's limit into another one that every placement within the limits keeps to and that such
// mixtures of placements exceed. With `b` an item's bytes, what is missing at the step
//
//   sum of b * absent >= missing      (absent = 0 or 1)
//
// becomes, for any g > 0, with missing = k * g + r, 0 < r <= g, and b = i * g + j, 0 <= j < g:
//
//   sum of (i * r + min(j, r)) * absent >= (k + 1) * r
//
// Three equal items of which 2.5 would have to leave: all three. Prices on such rows go into the
// minimum cut like those on bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solve/packed_placement.hpp"
#include "planner/solve/placement_index.hpp"
#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// How much of an item is present at a place, 0 to 1: what a mixture of placements has there.
class MixedPresence {
 public:
  /// Weights need not sum to 1.
  explicit MixedPresence(std::vector<std::pair<const PackedPlacement*, double>> placements);
  [[nodiscard]] double at(const MemoryTerm& term) const;

 private:
  std::vector<std::pair<const PackedPlacement*, double>> placements_;
  double total_ = 0;
};

/// The weight of a placement in a row.
[[nodiscard]] double use_of(const MemoryRow& row, const PackedPlacement& placement);

/// The rows of this step that the mixture exceeds by most for their length, `most` of them at most;
/// none: it keeps to all. They hold for every placement within the restrictions and the limits.
[[nodiscard]] std::vector<MemoryRow> rounded_rows(const CutModel& model,
                                                  const PlacementIndex& index,
                                                  const Restrictions& restrictions,
                                                  std::int32_t step, const MixedPresence& mixture,
                                                  std::size_t most);

}  // namespace stowage
