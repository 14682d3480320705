// The plan's checkpointed modules, held against the step.
#pragma once

#include <optional>

#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/plan_places.hpp"

namespace stowage {

struct CheckpointedModules {
  Check check;                    ///< "checkpointed modules"
  std::optional<StepGraph> step;  ///< with their second runs; none: the check failed
};

/// Each module has kernels, in one piece, that save something; none is twice in the plan or within
/// another one; none writes to what it was given, or to what a second write changes.
[[nodiscard]] CheckpointedModules find_checkpointed_modules(const PytorchPlan& plan,
                                                            const PlanPlaces& places,
                                                            const StepGraph& step);

}  // namespace stowage
