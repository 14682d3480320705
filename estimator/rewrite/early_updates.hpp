// The update of a parameter right after its gradient, instead of after all of backward.
//
//   kept    forward | backward of c, b, a | update of a, b, c
//   early   forward | backward of c, update of c, backward of b, update of b, ...
//
// A gradient is then let go as soon as its parameter is updated, and an update on the CPU, or the
// copies of a parameter and its state, go on beside the rest of backward. PyTorch's way there is a
// hook: torch.Tensor.register_post_accumulate_grad_hook ("optimizer step in backward").
//
// An update node moves to just behind the last node that it depends on: what it reads was written,
// what it writes was read and written before. The numbers are the same: one that needs all
// gradients (a norm over all of them) stays where it is, and so does what depends on it.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Sets LoweringSettings::early_updates. Linear in the nodes' arguments. Errors: it is an
/// inference; it has them early already.
[[nodiscard]] Result<StepGraph> with_early_updates(StepGraph step);

}  // namespace stowage
