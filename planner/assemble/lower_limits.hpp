// What to solve for next where a placement does not pack: limits of single steps, lowered so that
// the combination that was in the way is no longer possible.
#pragma once

#include <vector>

#include "estimator/arena/arena.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

using StepLimits = std::vector<Bytes>;  ///< by step: the memory that a placement may have there

/// A placement whose arena is above the budget.
struct Overflow {
  ArenaBound bound;
  std::vector<Bytes> memory;  ///< by step: of the placement
  std::vector<Bytes> beyond;  ///< by step: how far blocks reached beyond the budget; empty: the
                              ///< bound is above it, so nothing was packed
  Bytes arena;                ///< the smallest that was found; else the bound
};

/// Several ways to go on, each with at least one limit lower than in `limits`. Where places are
/// held open (ArenaBound::held): less at the first, the second or the third of the steps in
/// conflict, none known to be better. Else what is to be tried first comes first: less at all steps
/// where blocks reached beyond the budget; at single stretches of those that are too full for it;
/// at all by half, and where much is missing by an eighth and a quarter, since the hole need not
/// shrink with what is live.
[[nodiscard]] std::vector<StepLimits> ways_out(const StepLimits& limits, const Overflow& overflow,
                                               GpuBudget budget);

/// All steps by the excess, a sixty-fourth of the budget at least: what packing wastes need not
/// shrink with the live sum.
[[nodiscard]] StepLimits lowered_everywhere(const StepLimits& limits, Bytes excess,
                                            GpuBudget budget);

[[nodiscard]] StepLimits halfway(const StepLimits& a, const StepLimits& b);

}  // namespace stowage
