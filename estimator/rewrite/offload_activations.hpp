// What autograd saves goes to pinned host memory, and comes back when backward wants it: TRL 1.16's
// OffloadActivations (trl/models/activation_offloading.py), which is torchtune's
// (torchtune/training/_activation_offloading.py) grown older; hooks on saved tensors.
//
//   kept        forward of a, b, c ......... | backward of c, b, a
//   offloaded   a, a to host, b, b to host.. | c from host, backward of c, b from host, ...
//
// With streams a copy runs beside the kernels, so that its tensor must outlast it: a stash keeps
// the tensors of the last saves, and lets one go when `stash` more tensors have been saved, or
// after the first backward node that reads an offloaded one. A tensor that has come back is kept
// until the next such node is done. Without streams neither is needed.
//
// Not offloaded: parameters, tensors of fewer than `least_bytes`, what the output layer saves (a
// hook on the head turns offloading off: the head's tensors are wanted at once), and a tensor that
// is saved again while the stash has it, which then stays on the GPU until that save is read. What
// is no contiguous tensor from its storage's start on is copied on the GPU first. A checkpointed
// region saves what enters it, but for what enters others too: that is handed over by keyword.
//
// The copies are nodes of their own, of kernels that only PyTorch has (step/offloaded_bytes.hpp).
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/fine_tuning.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// What of a model the hooks see.
struct OffloadedPart {
  std::vector<CheckpointRegion> regions;
  std::vector<OperatorId> unhooked;  ///< output layers, and what the script runs outside the hooks
};

/// `step` trains, has one micro-batch and PyTorch's kernels, and its regions are checkpointed.
/// SavedTensors that go to the host are taken off its list. Sizes are compared at a batch of 1.
/// O(nodes + saved tensors), but for sorting.
[[nodiscard]] Result<StepGraph> with_offloaded_activations(StepGraph step,
                                                           const OffloadedPart& part,
                                                           const OffloadSettings& settings);

}  // namespace stowage
