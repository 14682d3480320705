// Checkpointed regions (torch/utils/checkpoint.py, use_reentrant=False): rewrites a step so that it
// saves less of its forward pass and runs parts of it again during backward.
//
//   kept          forward ................. | backward of b, a
//   checkpointed  forward ................. | a, b again | backward of b, a
//
// Forward is unchanged. The tensors that a region's operators save for backward are no longer kept.
// The region's inputs are kept until the backward of its first operator that saves something has
// run. Before the first backward kernel that needs one of the dropped tensors, the region's forward
// kernels run again on new storages, named "conv1.recomputed", with the same random numbers (the
// attribute `seed` is the operator's) and a separate autocast cache. They run up to the last saved
// tensor. PyTorch stops there in the middle of an operator, so that a linear layer at the end of a
// region, which saves only its input, is not computed again. Running statistics are updated once
// (PyTorch: twice).
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A region: operators whose saved tensors are dropped and whose forward pass runs again. The ids
/// are indices of StepGraph::origins, in execution order.
struct CheckpointRegion {
  std::vector<OperatorId> operators;
  /// The operators among them whose results are kept and that do not run again: MUST_SAVE of
  /// torch.utils.checkpoint.create_selective_checkpoint_contexts. Such a result is released when
  /// the second run reaches its operator; if that is beyond the end of the second run, together
  /// with the region's inputs.
  std::vector<OperatorId> kept = {};
  /// Calls of autograd's hook for tensors that the region is given, which keeps them: then nothing
  /// but autograd keeps these storages (kept_by_autograd). `unpacked_before` is set by
  /// with_checkpoints(): the first node of the second run.
  std::vector<SavedCall> inputs = {};
};

/// Precondition: `step` trains and has one micro-batch, and no kernel of a region works in place on
/// the region's inputs. A repeated node has the origin of the original. Regions that save nothing
/// change nothing. Linear in the nodes of the result, except for sorting.
/// Errors: the step has several micro-batches; a region's operator does not exist or is in two
/// regions.
[[nodiscard]] Result<StepGraph> with_checkpoints(StepGraph step,
                                                 const std::vector<CheckpointRegion>& regions);

/// Whether with_checkpoints() inserted the node: forward's, run again in backward.
[[nodiscard]] bool is_second_run(const KernelNode& node);

}  // namespace stowage
