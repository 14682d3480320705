// Which kernels of the forward pass may run a second time, and which of them only together.
//
// A group is one kernel, or several that write a storage in common (a batch norm and the ReLU that
// works in place on its result): what they make is made again by all of them, in their order.
// Everything that a group makes is recomputed or nothing of it: a dropout's result and its mask,
// a layer norm's result and its statistics. A batch norm's statistics are kept (second_run.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/rewrite/second_run.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

struct RerunGroup {
  std::vector<NodeId> nodes;     ///< ascending
  std::vector<SecondRun> runs;   ///< how they run again
  std::vector<StorageId> makes;  ///< transient storages, in the order of their first write
  NodeId until;  ///< valid: this node overwrites what they read, so that they run again before it
};

struct RerunGroups {
  std::vector<RerunGroup> groups;      ///< by their first node
  std::vector<std::int32_t> group_of;  ///< by StorageId, whose group makes it; -1: none
};

/// None makes what outlives the step, an input, the output or a loss; what backward overwrites;
/// what a kernel outside the group has read before the group was done with it. No foreign or custom
/// kernel is in one, nor one that changes what persists: but batch norm is, whose second run
/// leaves the running statistics alone. Random kernels draw the same numbers again (their
/// attribute `seed`). Linear in the step, but for sorting.
[[nodiscard]] RerunGroups rerun_groups(const StepGraph& step);

/// What a group has made again is let go before a backward node.
struct Renewal {
  std::int32_t group = -1;
  NodeId before;
};

/// A kernel that runs again, before a node of the step as it was.
struct Rerun {
  NodeId before;
  SecondRun run;
  std::int32_t group = -1;
  bool renews = false;  ///< its group has run again before, and that was let go
};

/// Those of the chosen groups' kernels that backward needs, as late as it can wait: before the
/// first backward node that reads what a group makes, the group runs again, and before it those
/// chosen groups whose results it reads and that are not there; together in the order of the
/// forward pass. A group runs again once, and once more for each renewal after which it is needed.
/// `chosen`: by group.
[[nodiscard]] std::vector<Rerun> rerun_schedule(const StepGraph& step, const RerunGroups& groups,
                                                const std::vector<bool>& chosen,
                                                const std::vector<Renewal>& renewals = {});

/// The first of the schedule that comes too late (RerunGroup::until); null: none does.
[[nodiscard]] const Rerun* too_late(const RerunGroups& groups, const std::vector<Rerun>& schedule);

}  // namespace stowage
