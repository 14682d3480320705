// Adds the sum of a replica's gradients with those of the other GPUs' replicas before the update,
// as TensorFlow's MirroredStrategy does it.
//
//   backward -> gradients -> pack (one tensor of all of a format) -> sum -> unpack -> update
//
// All gradients of one format are concatenated into one tensor, NCCL sums it in place, and it is
// split into gradients again: tf.distribute's CollectiveAllReduce without bytes_per_pack,
// NcclAllReduce with num_packs=1 (python/distribute/cross_device_ops.py and mirrored_strategy.py,
// which use collectives over NCCL if all devices are physical GPUs). SplitV can share its input's
// memory only if each part starts at an aligned address, which it cannot know for a tensor of one
// axis (core/kernels/split_v_op.cc), so each part is a copy. So the gradients exist twice, at a
// time when the activations have been released.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Precondition: a training step. The updates read the unpacked gradients; StepGraph::gradients
/// stays unchanged, with the replica's own. Linear in the step. Errors: gradients that are updated
/// early.
[[nodiscard]] Result<StepGraph> with_packed_gradients(StepGraph step);

}  // namespace stowage
