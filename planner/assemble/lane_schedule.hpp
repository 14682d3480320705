// The whole schedule of a placement: where its copies stand, and when the CPU's nodes run beside
// the GPU's.
//
// A node on the CPU is issued as soon as what it reads is there, be that before its own step: an
// update that stands at the end of the step begins when its gradient has come down. It is awaited
// at the first boundary by which the CPU has had time for it, or where its results are wanted.
#pragma once

#include <span>
#include <vector>

#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/schedule_copies.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// The schedule's copies as a plan has them, in order, and what each takes.
struct PlacedCopies {
  std::vector<Transfer> transfers;
  std::vector<double> seconds;
};
[[nodiscard]] PlacedCopies copies_of(const ResidencyProblem& problem, const ItemMoves& moves,
                                     const CopySchedule& schedule);

/// Of a few schedules the one whose simulated step is the shortest; with the windows of the CPU's
/// nodes. Among them is the one in which the GPU waits for each of them. `node_seconds`: by step,
/// on its device. Deterministic, and linear but for schedule_copies.
[[nodiscard]] CopySchedule schedule_lanes(const ResidencyProblem& problem,
                                          const Placement& placement, const ItemMoves& moves,
                                          std::span<const double> node_seconds, CopyRoom room);

}  // namespace stowage
