// fit_schedule: schedules copies so that their memory in flight packs as well.
//
// What the placement itself keeps is packed first. Copies that take only what is free at their
// items' own places then always pack, but are late. With more memory they are in flight for longer,
// which shortens the step until nothing packs. So the search begins with all the memory that the
// live sums leave, and takes off what reaches beyond the budget, until it packs or the step is no
// shorter.
#pragma once

#include <cstdint>
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
  Bytes arena;  ///< of `fitted`; without it, as AssemblyOptions says
};

/// Deterministic.
[[nodiscard]] ScheduleOutcome fit_schedule(const PlacedStep& placed,
                                           const AssemblyOptions& options);

/// The work (work_budget.hpp) of a schedule with its simulation, and of a packing.
[[nodiscard]] std::int64_t work_of_schedule(const PlacedStep& placed);
[[nodiscard]] std::int64_t work_of_packing(const ArenaPacking& packing);

/// The schedule in which copies have all the memory that the live sums leave within the budget,
/// whether it packs or not. A schedule that packs hardly ever has a shorter step.
[[nodiscard]] CopySchedule widest_schedule(const PlacedStep& placed, GpuBudget budget);
[[nodiscard]] double widest_step_seconds(const PlacedStep& placed, GpuBudget budget);

}  // namespace stowage
