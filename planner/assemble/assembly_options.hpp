// AssemblyOptions: the budget and the effort with which a placement is scheduled and packed.
#pragma once

#include <limits>
#include <span>

#include "estimator/base/bytes.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/work_budget.hpp"

namespace stowage {

struct AssemblyOptions {
  GpuBudget budget;      ///< copies in flight take at most what the placement leaves of it
  int arena_effort = 1;  ///< as pack_arena's
  /// The effort of the packing that decides whether the placement is a plan.
  int last_effort = 1;
  /// The caller discards a plan above the budget. Then only totals.arena is set: to a lower bound,
  /// or to the peak of the packing if there is one.
  bool must_fit = false;
  /// The caller discards a plan whose step is not shorter than this. If even a simulation whose
  /// copies have all the memory that the sums allow is not shorter, nothing is packed and
  /// totals.arena is unlimited_arena.
  double longest_step = std::numeric_limits<double>::infinity();
  /// Copies in flight may use more than what is free at their items' own places: a shorter step,
  /// for a few more packings.
  bool widens = true;
  /// A packing of what the placement keeps, within the budget: an offset for each request of
  /// kept_claims (arena_claims.hpp). Empty: it is still to be packed.
  std::span<const Bytes> kept = {};
  WorkBudget* work = nullptr;  ///< charged for schedules and packings, which it does not end
};

}  // namespace stowage
