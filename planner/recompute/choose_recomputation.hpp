// choose_recomputation: the values that a training step should make again in its backward pass so
// that it fits a budget, in as few extra seconds as the search finds.
//
// A heuristic: no bound is proved. Each point is a list of values for with_recomputation
// (estimator/rewrite/recompute.hpp); the step that it makes is planned as any other. The first
// point fits the budget by recomputation alone if the search finds such a point. The others
// recompute less, so that more stays live, which the planner then swaps.
#pragma once

#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/rates.hpp"
#include "planner/problem/step_pins.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct RecomputeOptions {
  GpuBudget budget;
  StepPins pins = {};  ///< of the step's nodes and storages
  /// By point: how much it leaves to be swapped, ascending. A factor on the bytes that the link can
  /// bring down while the forward pass computes, or on the bytes above the budget if these are
  /// fewer.
  std::vector<double> swapped = {0, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1};
  double effort = 1;           ///< a factor on the number of choices tried
  WorkBudget* work = nullptr;  ///< once over, the best points so far are returned; null: no limit
};

struct RecomputePoint {
  std::vector<RecomputedValue> values;  ///< ascending, not empty
  double extra_seconds = 0;             ///< of what runs again
  Bytes live_peak;    ///< with all else on the GPU, each kernel with its least workspace
  Bytes limit;        ///< the limit of the search: the budget, or more
  bool fits = false;  ///< live_peak <= limit
};

/// At most one point for each factor of `swapped`, and equal points only once. None where
/// everything fits the budget, nothing can be recomputed, or the step does not train. Equal
/// problems have equal answers. Preconditions,
/// else there are no points: the kernels of the step are those of our own executor, and it
/// recomputes nothing yet.
[[nodiscard]] std::vector<RecomputePoint> choose_recomputation(const SizedStep& step,
                                                               const Rates& rates,
                                                               const RecomputeOptions& options);

}  // namespace stowage
