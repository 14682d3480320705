// The busiest lane: how little it can have to do, and which placements share the work best.
//
// What a user waits for is a step with copies and the CPU beside the GPU. A lane (the GPU's
// operations, the CPU's, uploads, downloads) does one thing after the other, so no step is shorter
// than what its busiest lane has to do, whatever runs beside what. For
// weights w >= 0 that add up to 1 and prices p >= 0,
//
//   L(w, p) = min over placements of [ sum of w_k * seconds of lane k + sum of p(t) * memory(t) ]
//             - sum of p(t) * limit(t)
//
// is one minimum cut and a lower bound on the busiest lane of every placement within the limits,
// and so on the overlapped step. Maximised over w and p at once by cutting planes (lagrangian.hpp
// has the same with fixed weights).
#pragma once

#include <functional>
#include <vector>

#include "planner/certificate/certificate.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct BalanceOptions {
  GpuBudget budget;  ///< memory at every step; not below the floor
  int most_cuts = 40;
  double close_enough = 0.002;  ///< of the bound: how far below the maximum it may stay
  std::function<bool()> stop;   ///< polled before each cut but the first
};

struct LaneBalance {
  double step_lower_bound_seconds = 0;  ///< no placement within the budget has a shorter step
  /// At which the bound was found; they add up to 1.
  LaneWeights weights{1.0 / 4, 1.0 / 4, 1.0 / 4, 1.0 / 4};
  std::vector<MemoryPrice> prices;  ///< likewise
  int cuts = 0;
};

[[nodiscard]] double busiest_lane(const Evaluation& evaluation);

/// `fitting`: a placement within the budget. Deterministic where `stop` does not end it.
[[nodiscard]] LaneBalance balance_lanes(const ResidencyProblem& problem, const Placement& fitting,
                                        const BalanceOptions& options);

}  // namespace stowage
