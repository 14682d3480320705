// RerunGroups: the kernels of the forward pass that may run a second time, in groups of those that
// must run together.
//
// A group is one kernel, or several that write the same storage (a batch norm and a ReLU that works
// in place on its result), which run again together in their order. Either all results of a group
// are recomputed or none: a dropout's result and its mask, a layer norm's result and its
// statistics. A batch norm's statistics are kept (second_run.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/rewrite/second_run.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

struct RerunGroup {
  std::vector<NodeId> nodes;     ///< ascending
  std::vector<SecondRun> runs;   ///< how they run the second time
  std::vector<StorageId> makes;  ///< its transient results, in the order of their first write
  /// If valid: this node overwrites an input of the group, which must run again before it.
  NodeId until;
};

struct RerunGroups {
  std::vector<RerunGroup> groups;      ///< in the order of their first nodes
  std::vector<std::int32_t> group_of;  ///< by StorageId: the group that makes it; -1: none
};

/// No group makes a storage that outlives the step, an input, the output, a loss, or a storage that
/// backward overwrites, or one that a kernel outside the group reads before the group has finished
/// writing it. No group contains a foreign or custom kernel, or a kernel that changes a persistent
/// storage; batch norm is allowed, as its second run does not update the running statistics. Random
/// kernels draw the same numbers again (their attribute `seed`). Linear in the step, except for
/// sorting.
[[nodiscard]] RerunGroups rerun_groups(const StepGraph& step);

/// Before the node `before`, the recomputed results of a group are released, to be computed once
/// more.
struct Renewal {
  std::int32_t group = -1;
  NodeId before;
};

/// A kernel that runs again, before a node of the original step.
struct Rerun {
  NodeId before;
  SecondRun run;
  std::int32_t group = -1;
  bool renews = false;  ///< not the group's first rerun: its results were released
};

/// The reruns of the chosen groups, as late as possible. A group runs again before the first
/// backward node that reads one of its results; before it run the chosen groups whose results it
/// reads and that do not exist then; all in the order of the forward pass. A group runs again once,
/// and once more for each renewal after which its results are needed. `chosen`: by group.
[[nodiscard]] std::vector<Rerun> rerun_schedule(const StepGraph& step, const RerunGroups& groups,
                                                const std::vector<bool>& chosen,
                                                const std::vector<Renewal>& renewals = {});

/// The first rerun that is scheduled too late (after RerunGroup::until); null: there is none.
[[nodiscard]] const Rerun* first_late_rerun(const RerunGroups& groups,
                                            const std::vector<Rerun>& schedule);

}  // namespace stowage
