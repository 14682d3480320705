// The widest windows of the CPU's nodes that a schedule of copies leaves: from what they need to
// what needs them (plan.hpp has the rules).
#pragma once

#include <vector>

#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/schedule_copies.hpp"

namespace stowage {

/// By node; empty for the GPU's. A window begins when the GPU's nodes before it that touch the same
/// items in a way that matters have run, those of the CPU have been issued, and the downloads that
/// it waits for have ended; it ends where a later node of the GPU does the same, or an upload of
/// what it writes begins, and else with the step. Of the schedule it takes `downloads` and
/// `uploads`. Linear.
[[nodiscard]] std::vector<StepRange> node_windows(const ResidencyProblem& problem,
                                                  const Placement& placement,
                                                  const ItemMoves& moves,
                                                  const CopySchedule& schedule);

}  // namespace stowage
