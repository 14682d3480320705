// A plan for PyTorch as far as a configuration of another program can say it: the batch, the
// precision, the optimizer; and which of its decisions it cannot.
//
// Such a plan names its step by a hash and holds no model, so that nothing is sized here.
#pragma once

#include <string>
#include <vector>

#include "answers/exporting/engine_step.hpp"
#include "estimator/base/diagnostic.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

/// The step as a configuration says it: a micro-batch, accumulated. Errors: an inference; a
/// precision or an optimizer that is not known.
[[nodiscard]] Result<EngineStep> engine_step(const PytorchPlan& plan);

/// What of the plan a configuration cannot say, a line each.
[[nodiscard]] std::vector<std::string> unexpressed_decisions(const PytorchPlan& plan);

}  // namespace stowage
