// What autograd would refuse of a training step, so that no memory is promised for a step that does
// not run.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Errors: nothing that leads to the loss is trained. Of PyTorch's lowering also, each at the
/// layer: an in-place operator over a trained parameter ("a leaf Variable that requires grad"), and
/// one over what an earlier operator saved for its backward ("modified by an inplace operation").
/// Our own executor's lowering copies there instead. Linear in the step.
[[nodiscard]] Diagnostics autograd_refusals(const ModelGraph& model, const StepGraph& step);

}  // namespace stowage
