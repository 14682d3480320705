// AssemblyOptions: within what, and with how much effort, a placement is scheduled and packed.
#pragma once

#include <limits>
#include <span>

#include "estimator/base/bytes.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

struct AssemblyOptions {
  GpuBudget budget;      ///< for the arena: copies in flight take no more than what is left of it
  int arena_effort = 1;  ///< as pack_arena's
  /// The same where nothing is left but to pack what the placement keeps: it decides whether the
  /// placement is a plan.
  int last_effort = 1;
  /// A plan above the budget is not wanted: of one only totals.arena is filled in, with what is
  /// known by then.
  bool must_fit = false;
  /// Nor is one with a step that is not shorter, as far as a simulation tells whose copies have all
  /// the room that the sums allow: then nothing is packed, and totals.arena is unlimited_arena.
  double longest_step = std::numeric_limits<double>::infinity();
  /// Copies may be in flight beyond what is free at their items' own places: a shorter step, for a
  /// few more packings.
  bool widens = true;
  /// Offsets within the budget of what the placement keeps, one a request of kept_claims
  /// (arena_claims.hpp); empty: it is still to be packed.
  std::span<const Bytes> kept = {};
};

}  // namespace stowage
