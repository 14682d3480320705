// tightened_limits: the limits to solve within next where a placement does not pack. Limits of
// single steps are lowered so that the combination that did not pack is no longer possible.
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
  /// By step: how far blocks reached beyond the budget; empty: the bound is above the budget, so
  /// nothing was packed.
  std::vector<Bytes> beyond;
  Bytes arena;  ///< the smallest that was found; else the bound
};

/// Several sets of limits to go on with, each with at least one limit lower than in `limits`. Where
/// places are held open (ArenaBound::held): less at the first, the second or the third of the steps
/// in conflict, none known to be better. Else in the order in which to try them: less at all steps
/// where blocks reached beyond the budget; less at single stretches of those steps that are too
/// full for the excess; less at all of them by half and, where much is missing, by an eighth and a
/// quarter of the excess, since the hole need not shrink with the live sum.
[[nodiscard]] std::vector<StepLimits> tightened_limits(const StepLimits& limits,
                                                       const Overflow& overflow, GpuBudget budget);

/// Lowers all steps by the excess, and by at least a sixty-fourth of the budget: the holes of a
/// packing need not shrink with the live sum.
[[nodiscard]] StepLimits lowered_everywhere(const StepLimits& limits, Bytes excess,
                                            GpuBudget budget);

[[nodiscard]] StepLimits halfway(const StepLimits& a, const StepLimits& b);

}  // namespace stowage
