// Offloads the tensors that autograd saves to pinned host memory until backward needs them: TRL
// 1.16's OffloadActivations (trl/models/activation_offloading.py, based on torchtune's
// torchtune/training/_activation_offloading.py), which uses hooks on saved tensors.
//
//   kept        forward of a, b, c ......... | backward of c, b, a
//   offloaded   a, a to host, b, b to host.. | c from host, backward of c, b from host, ...
//
// With streams a copy overlaps with the kernels, so its tensor must live until the copy is done: a
// stash holds the most recently saved tensors. It releases one when `stash` more tensors have been
// saved, or after the first backward node that reads an offloaded one. A tensor that was copied
// back is held until the next such node is done. Without streams neither is needed.
//
// Not offloaded: parameters; tensors of fewer than `least_bytes`; the tensors that the output layer
// saves, which backward needs at once (a hook on the head disables offloading); and a tensor that
// is saved again while it is in the stash, which then stays on the GPU until that save is read. A
// tensor that is not contiguous from its storage's start is first copied on the GPU. A checkpointed
// region saves its inputs, except those that other regions also have, which are passed by keyword.
//
// The copies are separate nodes with kernels that only PyTorch has (step/offloaded_bytes.hpp).
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/fine_tuning.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The parts of a model that the hooks treat specially.
struct OffloadedPart {
  std::vector<CheckpointRegion> regions;
  /// Output layers, and operators that the script runs outside the hooks.
  std::vector<OperatorId> unhooked;
};

/// Precondition: `step` trains, has one micro-batch and PyTorch's kernels, and its regions are
/// checkpointed. Offloaded tensors are removed from the step's list of saved tensors. Sizes are
/// compared at a batch of 1. O(nodes + saved tensors), except for sorting.
[[nodiscard]] Result<StepGraph> with_offloaded_activations(StepGraph step,
                                                           const OffloadedPart& part,
                                                           const OffloadSettings& settings);

}  // namespace stowage
