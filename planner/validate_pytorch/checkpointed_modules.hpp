// The plan's regions that run again in backward, held against the step.
#pragma once

#include <optional>

#include "estimator/document/step_document.hpp"
#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/plan_places.hpp"

namespace stowage {

struct CheckpointedModules {
  Check check;                    ///< "checkpointed modules"
  std::optional<StepGraph> step;  ///< with their second runs; none: the check failed
};

/// A region is a module that runs once, or children in a row of an nn.Sequential; it has kernels,
/// in one piece, that save something; it is in the plan once, and overlaps another one only where
/// it lies in that. Its second run finds what the first one found: nothing of forward writes to
/// what the region is given from its first kernel on, or to what it saves, afterwards. What it is
/// given is among the step's saved tensors then, with the keys that entering_tensors.hpp says.
/// Precondition: unknown_to_recount() knows all of the plan.
[[nodiscard]] CheckpointedModules find_checkpointed_modules(const PytorchPlan& plan,
                                                            const PlanPlaces& places,
                                                            const StepDocument& document);

}  // namespace stowage
