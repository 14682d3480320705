// Searches for an order of a step's nodes with a lower peak of live memory and the same results.
//
// The search starts from the given order and from two list schedules: one from the front (of the
// nodes that may run, take the one that raises the peak least, then the one that frees most) and
// the same from the back. Then it repeatedly reorders a window of nodes around the peak, by dynamic
// programming over sets of nodes that have run: each set keeps the order with the lowest peak. If a
// level has more sets than may be kept, only the best are (a beam search). So a step with few nodes
// or few branches is ordered exactly and others heuristically, and no bound is proved.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "estimator/order/order_problem.hpp"

namespace stowage {

struct LowerPeakOptions {
  std::size_t most_sets = 400;      ///< sets kept at a level
  int most_rounds = 300;            ///< number of windows reordered
  std::function<bool()> stop = {};  ///< polled; the best so far is returned
};

/// Returns a permutation of the nodes that keeps the dependences; the given order if no lower peak
/// is found. Deterministic, unless stopped.
[[nodiscard]] std::vector<std::int32_t> lower_peak_order(const OrderProblem& problem,
                                                         const LowerPeakOptions& options = {});

}  // namespace stowage
