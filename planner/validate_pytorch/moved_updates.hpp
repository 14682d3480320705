// Where and when a plan has parameters updated, held against the step.
#pragma once

#include <vector>

#include "estimator/document/step_document.hpp"
#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/plan_places.hpp"

namespace stowage {

struct MovedUpdates {
  bool early = false;         ///< each as soon as its gradient is whole
  std::vector<bool> on_host;  ///< by ParameterId
  bool all_on_host = false;   ///< with what belongs to no parameter
  bool some_on_host = false;  ///< not all of them

  [[nodiscard]] bool changes_nothing() const { return !early && !all_on_host && !some_on_host; }
};

struct PlannedUpdates {
  Check check;  ///< "update"
  MovedUpdates moved;
};

/// Nothing but the update reads a gradient, and the update reads nothing else of the GPU's; there
/// is one backward pass before it. Where not all updates move together, each parameter has a part
/// of the update's kernels of its own. Named parameters exist, and get a gradient. `step`: the
/// document's, with the plan's modules checkpointed.
[[nodiscard]] PlannedUpdates find_moved_updates(const PytorchPlan& plan, const PlanPlaces& places,
                                                const StepDocument& document,
                                                const StepGraph& step);

}  // namespace stowage
