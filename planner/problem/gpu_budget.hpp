// GpuBudget: how much of the GPU's memory a plan may take, and the rule by which that is judged.
//
// The rule: everything that a plan has on the GPU lies in one arena, and the arena's size must not
// exceed the budget.
//   counts          storages while they are on the GPU, copies in flight, workspaces, temporaries,
//                   each rounded up to whole granules (arena_alignment), and the holes between them
//   does not count  the process's context and libraries and what other processes use: these are
//                   taken off the card's memory before (PlanRequest::available); the host's memory,
//                   which has limits of its own (host_use.hpp)
//
// What is live at one step never exceeds the arena. So solvers limit the live bytes of each step to
// the budget (step_limits), and packing shows afterwards whether the arena fits.
//
// Code that asks whether something fits, how much is too much and how much is left asks the budget
// and compares no bytes itself: a second rule, such as the memory that a caching allocator reserves
// for the plan, then changes this file alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

/// The size of an arena that is not limited, and of one that is not known.
inline constexpr Bytes unlimited_arena{std::int64_t{1} << 62};

struct GpuBudget {
  Bytes bytes;  ///< the largest arena that is allowed

  constexpr GpuBudget() = default;
  /// Users name a budget by its bytes alone.
  constexpr GpuBudget(Bytes most) : bytes(most) {}  // NOLINT: implicit, as said above

  [[nodiscard]] static constexpr GpuBudget unlimited() { return {unlimited_arena}; }
  [[nodiscard]] bool is_limited() const { return bytes != unlimited_arena; }

  /// Whether an arena, or the live bytes of a step, keeps within the budget.
  [[nodiscard]] bool fits(Bytes taken) const { return taken <= bytes; }
  /// By how much it is above the budget; 0: it fits.
  [[nodiscard]] Bytes excess(Bytes taken) const { return std::max(Bytes(), taken - bytes); }
  /// What may still be taken beside it; 0: nothing.
  [[nodiscard]] Bytes left_beside(Bytes taken) const { return std::max(Bytes(), bytes - taken); }

  /// So many of 64 equal parts, rounded down: searches keep the rest free for copies in flight and
  /// for the holes that packing leaves.
  [[nodiscard]] GpuBudget sixty_fourths(std::int64_t parts) const {
    return {Bytes(bytes.count() / 64 * parts)};
  }
  /// The live bytes that a placement may have at each step.
  [[nodiscard]] std::vector<Bytes> step_limits(std::size_t steps) const {
    return std::vector<Bytes>(steps, bytes);
  }

  bool operator==(const GpuBudget&) const = default;
};

}  // namespace stowage
