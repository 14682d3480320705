// fit_schedule: copies scheduled so that what they keep in flight packs as well.
//
// What the placement itself keeps is packed first; copies that take what is free at their items'
// own places then always pack, but are late. With more room they are in flight for longer, which
// shortens the step until nothing packs: so the search begins with all the room that the sums leave
// and takes off what reaches beyond the budget, until it packs or the step is no shorter.
#pragma once

#include <optional>

#include "planner/assemble/arena_claims.hpp"
#include "planner/assemble/assembly_options.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {

struct FittedSchedule {
  CopySchedule schedule;
  ArenaClaims claims;
  ArenaPacking packing;
};

struct ScheduleOutcome {
  std::optional<FittedSchedule> fitted;
  Bytes arena;  ///< of what is fitted; else what is known of it, by AssemblyOptions
};

/// Deterministic.
[[nodiscard]] ScheduleOutcome fit_schedule(const PlacedStep& placed,
                                           const AssemblyOptions& options);

/// Where copies have all the room that the sums leave within the budget, packed or not: what fits
/// hardly ever has a shorter step.
[[nodiscard]] CopySchedule widest_schedule(const PlacedStep& placed, GpuBudget budget);
[[nodiscard]] double widest_step_seconds(const PlacedStep& placed, GpuBudget budget);

}  // namespace stowage
