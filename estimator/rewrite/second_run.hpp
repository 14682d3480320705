// SecondRun: the form in which a kernel of the forward pass runs again during backward.
//
// Most kernels run unchanged; random ones draw the same numbers again. A batch norm uses the batch
// statistics of its first run, which are kept because they are small, and reads its argument once,
// where the first run reads it twice. An activation that works in place on its result is applied in
// the same kernel:
//
//   first run   x, w, b, mean, var -> y, save_mean, save_invstd, mean, var     y -> y
//   second run  x, w, b, save_mean, save_invstd -> y
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A kernel that runs again.
struct SecondRun {
  NodeId node;
  /// If valid: the activation of a batch norm that is applied in the same kernel.
  NodeId activation;
  bool operator==(const SecondRun&) const = default;
};

/// The second runs of nodes that run again together. `nodes` and the result are ascending.
[[nodiscard]] std::vector<SecondRun> second_runs(const StepGraph& step,
                                                 const std::vector<NodeId>& nodes);

/// The node of a second run, still with the storages, name and phase of the first run.
[[nodiscard]] KernelNode node_of(const StepGraph& step, SecondRun run);

/// Whether the second run writes the result at this index of KernelNode::writes again.
[[nodiscard]] bool is_made_again(const KernelNode& first, std::size_t write);

}  // namespace stowage
