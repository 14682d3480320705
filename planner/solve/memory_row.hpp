// LimitRow: a limit on what may be on the GPU at one step that is tighter than the limit on its
// bytes.
//
// At a step each item is there or not, so the step's limit is a knapsack. A relaxation keeps 0.6 of
// an embedding; a plan keeps it or does not. Rounding (Gomory 1960; Marchand and Wolsey 2001) turns
// the step's limit into one that every placement within the limits keeps to and that such mixtures
// of placements exceed. With `b` an item's bytes, the step lacks
//
//   sum of b * absent >= missing      (absent = 0 or 1)
//
// and for any g > 0, with missing = k * g + r, 0 < r <= g, and b = i * g + j, 0 <= j < g, this
// becomes
//
//   sum of (i * r + min(j, r)) * absent >= (k + 1) * r
//
// Example: of three equal items 2.5 would have to leave, so all three have to. Prices of such rows
// are arcs of the minimum cut, as prices of bytes are.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/solve/packed_placement.hpp"
#include "planner/solve/placement_index.hpp"
#include "planner/solve/residency_cut.hpp"

namespace stowage {

/// The share of a mixture of placements, 0 to 1, that has an item at a place.
class MixedPresence {
 public:
  /// Pairs of a placement and its weight. The weights need not sum to 1.
  explicit MixedPresence(std::vector<std::pair<const PackedPlacement*, double>> placements);
  [[nodiscard]] double at(const MemoryTerm& term) const;

 private:
  std::vector<std::pair<const PackedPlacement*, double>> placements_;
  double total_ = 0;
};

/// The weight that a placement takes of a row's limit.
[[nodiscard]] double use_of(const LimitRow& row, const PackedPlacement& placement);

/// The rounded rows of this step that the mixture violates most, relative to the length of the row;
/// at most `most` of them. None: it violates none. Every placement within the restrictions and the
/// limits keeps to them.
[[nodiscard]] std::vector<LimitRow> rounded_rows(const CutModel& model, const PlacementIndex& index,
                                                 const Restrictions& restrictions,
                                                 std::int32_t step, const MixedPresence& mixture,
                                                 std::size_t most);

}  // namespace stowage
