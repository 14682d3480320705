// Checkpointed regions (torch/utils/checkpoint.py, use_reentrant=False): a step that keeps less of
// its forward pass, and runs parts of it again, out of one that keeps all.
//
//   kept          forward ................. | backward of b, a
//   checkpointed  forward ................. | a, b again | backward of b, a
//
// Forward is unchanged. What the operators of a region save for backward is no longer kept; the
// region's inputs are kept, until the first of its operators that saves something has run its
// backward. Before the first backward that needs something of it, the region's forward kernels run
// again on storages of their own, named "conv1.recomputed", with the random numbers that they had
// (the attribute `seed` is the operator's) and under an autocast cache of its own. They run up to
// what was saved last: PyTorch stops there in the middle of an operator, so that a linear layer
// that ends a region, and saves its input alone, is not multiplied again. Running statistics are
// updated once (PyTorch: twice).
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Operators whose forward pass is forgotten and runs again: indices of StepGraph::origins, in the
/// order in which they run.
struct CheckpointRegion {
  std::vector<OperatorId> operators;
  /// Of these, those whose results are kept and that do not run again: MUST_SAVE of
  /// torch.utils.checkpoint.create_selective_checkpoint_contexts. A result is let go when the
  /// second run has come to where it was made; one past the second run's end with what enters.
  std::vector<OperatorId> kept = {};
};

/// `step` trains and has one micro-batch; no kernel of a region works in place on what enters it.
/// Origins are kept: what runs again has the origin of what it repeats. Regions that save nothing
/// change nothing. Linear in the step and in what runs again, but for sorting.
/// Errors: the step has several micro-batches; a region's operator is none of the step's or is in
/// another region too.
[[nodiscard]] Result<StepGraph> with_checkpoints(StepGraph step,
                                                 const std::vector<CheckpointRegion>& regions);

}  // namespace stowage
