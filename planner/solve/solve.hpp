// solve: the cheapest placement within a GPU memory budget, and a proven bound on any.
//
// Lagrangian relaxation with one minimum cut as its oracle, then tie filling, repair and local
// search; docs/planner.md has the mathematics and why the bound is one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/host_use.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct SolveOptions {
  GpuBudget budget;  ///< the limit of every step
  /// By step: limits below the budget, but never below the floor of the step; empty: the budget at
  /// every step. The bound is then one within these limits.
  std::vector<Bytes> limits = {};
  /// Limits of the host's memory, as host_use() counts it. The solution keeps to them if such a one
  /// is found. Bounds are of placements with any use of the host.
  HostLimits host = {};
  double target_gap = 0.01;  ///< share of the overhead: a smaller gap is not refined
  WorkBudget* work =
      nullptr;           ///< once over, the best so far is returned with its gap; null: no limit
  bool branches = true;  ///< whether to branch where the dual leaves a gap: the longest part
  std::size_t most_others = 0;  ///< how many of the next best placements to keep
  /// Consistent placements to start from, beside the solver's own; they need not fit.
  std::vector<Placement> starts = {};
};

struct Solution {
  Placement placement;
  Evaluation evaluation;
  Bytes beyond_host;  ///< excess over both limits of the host together; 0: none
  /// Other placements that were found, the cheapest first, none twice: for callers whose best
  /// placement does not pack.
  std::vector<Placement> others;
  double cost_lower_bound_seconds = 0;  ///< no placement within the budget costs less
  BranchTree proof;                     ///< proof of that bound
  double all_gpu_cost_seconds = 0;      ///< the cost of the cut with an unlimited budget
  bool proved_optimal = false;
  int cuts = 0;
  int active_steps = 0;  ///< steps with a positive price at the bound
};

/// Errors: the budget is below the floor (names the operation, the bytes it needs and its items);
/// contradictory pins.
[[nodiscard]] Result<Solution> solve(const ResidencyProblem& problem, const SolveOptions& options);

}  // namespace stowage
