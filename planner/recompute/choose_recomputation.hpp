// choose_recomputation: what a training step should make again in its backward pass so that it fits
// a budget, in as few extra seconds as the search finds.
//
// A heuristic: no bound is proved. Each point is a list of values for with_recomputation
// (estimator/rewrite/recompute.hpp); the step that it makes is planned as any other. The first
// point fits the budget by recomputation alone where the search finds such; the others recompute
// less and leave so much more live, which the planner then swaps.
#pragma once

#include <functional>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/rates.hpp"
#include "planner/problem/step_pins.hpp"

namespace stowage {

struct RecomputeOptions {
  GpuBudget budget;
  StepPins pins = {};  ///< of the step's nodes and storages
  /// How much each point leaves to be swapped: a factor on what the link can bring down while the
  /// forward pass computes, or on what lies above the budget if that is less. Ascending.
  std::vector<double> swapped = {0, 0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1};
  double time_limit_seconds = 10;   ///< for all points; the best so far are returned
  double effort = 1;                ///< a factor on how many choices are tried
  std::function<bool()> stop = {};  ///< polled
};

struct RecomputePoint {
  std::vector<RecomputedValue> values;  ///< ascending, not empty
  double extra_seconds = 0;             ///< of what runs again
  Bytes live_peak;    ///< where all else stays on the GPU, each kernel with its least workspace
  Bytes limit;        ///< that was asked for: the budget, or more
  bool fits = false;  ///< live_peak <= limit
};

/// One point a factor of `swapped`, but those alike once; none where everything fits the budget,
/// nothing can be recomputed, or the step does not train. Equal problems have equal answers, unless
/// the time limit or `stop` cuts them short. Preconditions: the step's kernels are our own
/// executor's and it recomputes nothing yet; else there are no points.
[[nodiscard]] std::vector<RecomputePoint> choose_recomputation(const SizedStep& step,
                                                               const Rates& rates,
                                                               const RecomputeOptions& options);

}  // namespace stowage
