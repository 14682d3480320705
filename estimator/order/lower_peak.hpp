// An order of a step's nodes with a lower peak of live memory, and the same results.
//
// Starts are the given order and two lists: from the front (of the nodes that may run, the one that
// raises the peak least, then frees most) and the same from the back. Then a window of nodes
// around the peak is ordered anew, again and again: all its orders at once, as sets of nodes that
// have run, level by level, of which each keeps the way with the lowest peak (a shortest path by
// its widest node). Where a level has more sets than are kept, the best of them are: a beam. So a
// step of few nodes or few branches is ordered exactly, others heuristically, and no bound is
// proved.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "estimator/order/order_problem.hpp"

namespace stowage {

struct LowerPeakOptions {
  std::size_t most_sets = 400;      ///< kept a level
  int most_rounds = 300;            ///< windows that are ordered anew
  std::function<bool()> stop = {};  ///< polled; the best so far is returned
};

/// A permutation of the nodes that keeps the dependences; the given order where no lower peak is
/// found. Equal problems have equal orders, unless stopped.
[[nodiscard]] std::vector<std::int32_t> lower_peak_order(const OrderProblem& problem,
                                                         const LowerPeakOptions& options = {});

}  // namespace stowage
