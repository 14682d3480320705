// From a placement to the executed step: transfers with their places, residences with their
// offsets in the two arenas, and what that sums to.
#pragma once

#include <limits>
#include <optional>

#include "estimator/arena/arena.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/plan/lanes.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

inline constexpr Bytes unlimited_arena{std::int64_t{1} << 62};

struct AssemblyOptions {
  Bytes budget;          ///< for the arena: copies in flight take no more than what is left of it
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
};

/// The arena is larger than the budget only where what the placement itself keeps there is (in
/// 256-byte granules, packed): copies then hide behind compute as far as the places allow.
/// Fills step, nodes, residences, transfers, and of the totals the peaks, the arena and its
/// bound, the bytes over PCIe and step_seconds. The rest is the caller's.
/// Preconditions: `problem` is make_problem's of `step`; evaluate() calls the placement consistent.
[[nodiscard]] Plan assemble_plan(const SizedStep& step, const ResidencyProblem& problem,
                                 const Placement& placement, const AssemblyOptions& options);

/// What is known of the arena of what the placement keeps, without packing it. Preconditions: as
/// assemble_plan's.
[[nodiscard]] ArenaBound bound_placement(const SizedStep& step, const ResidencyProblem& problem,
                                         const Placement& placement, Bytes budget);

/// The placement that keeps everything on the GPU that may be there: without pins to the CPU,
/// fetches are the inputs' alone. Every operation that is not pinned to the CPU runs on the GPU
/// with its first engine that fits in the budget beside what else is live, the smallest where none
/// does: the same choice as check's for the `stowage` runtime.
[[nodiscard]] Placement all_gpu_placement(const ResidencyProblem& problem,
                                          Bytes budget = unlimited_arena);

/// Seconds of each node on its device and of each transfer, by the problem's figures.
struct PlanSeconds {
  std::vector<double> nodes;
  std::vector<double> transfers;
};
[[nodiscard]] PlanSeconds plan_seconds(const ResidencyProblem& problem, const Placement& placement,
                                       const Plan& plan);

}  // namespace stowage
