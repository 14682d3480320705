// schedule_lanes: the whole schedule of a placement: when its copies run, and when the CPU's nodes
// run beside the GPU's.
//
// A node on the CPU is issued as soon as what it reads is there, even before its own step: an
// update at the end of the step begins when its gradient has come down. It is awaited at the first
// boundary by which the CPU has had time for it, or where its results are needed.
#pragma once

#include <span>
#include <vector>

#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/schedule_copies.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// The schedule's copies as a plan has them, in order, and the seconds of each.
struct PlacedCopies {
  std::vector<Transfer> transfers;
  std::vector<double> seconds;
};
[[nodiscard]] PlacedCopies copies_of(const ResidencyProblem& problem, const ItemMoves& moves,
                                     const CopySchedule& schedule);

/// The schedule with the shortest simulated step among a few, with the windows of the CPU's nodes.
/// One of the few is the schedule in which the GPU waits for each node of the CPU. `node_seconds`:
/// by step, on its device. Deterministic, and linear but for schedule_copies.
[[nodiscard]] CopySchedule schedule_lanes(const ResidencyProblem& problem,
                                          const Placement& placement, const ItemMoves& moves,
                                          std::span<const double> node_seconds, CopyRoom room);

}  // namespace stowage
