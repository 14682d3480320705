// node_windows: the widest windows of the CPU's nodes that a schedule of copies leaves, from what
// they need to what needs them (plan.hpp has the rules).
#pragma once

#include <vector>

#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/schedule_copies.hpp"

namespace stowage {

/// By node; empty for the GPU's. A window begins when three things are over: the GPU's nodes before
/// it that use the same items with a write on either side, the issue of such nodes of the CPU, and
/// the downloads that it waits for. It ends where a later node of the GPU uses the same items with
/// a write on either side, where an upload of what the node writes begins, or with the step. Of the
/// schedule only `downloads` and `uploads` are used. Linear.
[[nodiscard]] std::vector<StepRange> node_windows(const ResidencyProblem& problem,
                                                  const Placement& placement,
                                                  const ItemMoves& moves,
                                                  const CopySchedule& schedule);

}  // namespace stowage
