// From a ModelGraph to a StepGraph: forward, loss, backward and update as one list of kernel calls.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A step of one micro-batch; rewrite/lower_step.hpp makes one of several.
/// Precondition: settings.micro_batches is 1.
/// Errors: training asked of a model without a loss; an operator that the kernel set does not run;
/// a step without a kernel call; what autograd refuses (autograd_refusals.hpp); a size past 64 bits
/// (names the layer). Linear in operators and parameters.
[[nodiscard]] Result<StepGraph> lower(const ModelGraph& model, const LoweringSettings& settings);

}  // namespace stowage
