// balance_lanes: a lower bound on the busiest lane of any placement, and the lane weights that give
// it.
//
// A user waits for a step in which copies and the CPU work beside the GPU. A lane (the GPU's
// operations, the CPU's, uploads, downloads) does one thing after the other, so no step is shorter
// than the work of its busiest lane. For weights w >= 0 that add up to 1 and prices p >= 0,
//
//   L(w, p) = min over placements of [ sum of w_k * seconds of lane k + sum of p(t) * memory(t) ]
//             - sum of p(t) * limit(t)
//
// is one minimum cut and a lower bound on the busiest lane of every placement within the limits,
// and so on the overlapped step. w and p are maximised together by cutting planes (lagrangian.hpp
// does the same with fixed weights).
#pragma once

#include <vector>

#include "planner/certificate/certificate.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct BalanceOptions {
  GpuBudget budget;  ///< the limit of every step; not below the floor
  int most_cuts = 40;
  double close_enough = 0.002;  ///< share of the bound that it may stay below its maximum
  /// Charged for the cuts. Only a cancellation ends them early: where its work is spent they go on
  /// to `most_cuts`. Null: no charge.
  WorkBudget* work = nullptr;
};

struct LaneBalance {
  double step_lower_bound_seconds = 0;  ///< no placement within the budget has a shorter step
  /// The weights at which the bound was found; they add up to 1.
  LaneWeights weights{1.0 / 4, 1.0 / 4, 1.0 / 4, 1.0 / 4};
  std::vector<MemoryPrice> prices;  ///< the prices at which it was found
  int cuts = 0;
};

[[nodiscard]] double busiest_lane(const Evaluation& evaluation);

/// `fitting`: a placement within the budget. Deterministic unless cancelled.
[[nodiscard]] LaneBalance balance_lanes(const ResidencyProblem& problem, const Placement& fitting,
                                        const BalanceOptions& options);

}  // namespace stowage
