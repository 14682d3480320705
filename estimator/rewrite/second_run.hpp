// What kernels of the forward pass are when they run again for the backward pass.
//
// Most are what they were; random ones draw the numbers that they drew before. A batch norm takes
// the batch's statistics that its first run made, which are kept since they are small, and passes
// over its argument once where the first run passed twice. An activation that works in place on its
// result is applied in the same pass:
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
  NodeId activation;  ///< valid: of a batch norm, applied to its result in the same pass
  bool operator==(const SecondRun&) const = default;
};

/// Of nodes that run again together; ascending, as `nodes` are.
[[nodiscard]] std::vector<SecondRun> second_runs(const StepGraph& step,
                                                 const std::vector<NodeId>& nodes);

/// The node, with the storages, the name and the phase of the first run.
[[nodiscard]] KernelNode node_of(const StepGraph& step, SecondRun run);

/// Whether the second run makes again what the first wrote at this place of KernelNode::writes.
[[nodiscard]] bool is_made_again(const KernelNode& first, std::size_t write);

}  // namespace stowage
