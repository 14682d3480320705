// Moves the update of each parameter directly after its gradient, instead of after the whole
// backward pass.
//
//   kept    forward | backward of c, b, a | update of a, b, c
//   early   forward | backward of c, update of c, backward of b, update of b, ...
//
// A gradient is then released as soon as its parameter is updated, and an update on the CPU, or the
// copies of a parameter and its state, overlap with the rest of backward. In PyTorch this is done
// with torch.Tensor.register_post_accumulate_grad_hook ("optimizer step in backward").
//
// An update node moves directly behind the last node that it depends on: the last one that writes
// its arguments, or that reads or writes its results. The numbers are the same: a node that needs
// all gradients (a norm over all of them) stays where it is, and so do the nodes that depend on it.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Sets LoweringSettings::early_updates. Linear in the nodes' arguments. Errors: the step does not
/// train, or its updates are already early.
[[nodiscard]] Result<StepGraph> with_early_updates(StepGraph step);

}  // namespace stowage
