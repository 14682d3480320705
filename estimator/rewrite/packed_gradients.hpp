// The gradients of a replica summed with those of the other GPUs' replicas, as TensorFlow's
// MirroredStrategy does it before the update.
//
//   backward -> gradients -> pack (one tensor of all of a format) -> sum -> unpack -> update
//
// The gradients of a format are joined into one tensor, NCCL sums that in its place, and it is cut
// into gradients again: tf.distribute's CollectiveAllReduce without bytes_per_pack, NcclAllReduce
// with num_packs=1 (python/distribute/cross_device_ops.py and mirrored_strategy.py, which take
// collectives over NCCL where all devices are physical GPUs). SplitV shares its input's memory only
// where each part starts at an aligned place, which it does not know of a tensor of one axis
// (core/kernels/split_v_op.cc): each part is a copy. So gradients are there twice, while the
// activations have gone.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Precondition: a training step. The updates read what was unpacked; StepGraph::gradients stay
/// those of the replica. Linear in the step. Errors: gradients that are updated early.
[[nodiscard]] Result<StepGraph> with_packed_gradients(StepGraph step);

}  // namespace stowage
