// A plan's totals for PyTorch, counted again from the step as its hooks run it.
#pragma once

#include <optional>
#include <vector>

#include "estimator/check/check.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/hooked_graph.hpp"
#include "planner/validate_pytorch/plan_places.hpp"
#include "planner/validate_pytorch/recount.hpp"

namespace stowage {

/// What the plan's decisions are, as nodes and storages of its step.
struct FoundDecisions {
  StepGraph step;  ///< with checkpointed modules
  std::vector<StayOnHost> stays;
  std::vector<PieceOfModule> pieces;
  MovedUpdates updates;
};

/// "copied bytes", "pinned memory", "allocator", "card", "step time", "bounds". Errors: the step
/// cannot be sized.
[[nodiscard]] Result<std::vector<Check>> count_totals(const PytorchPlan& plan,
                                                      const PlanPlaces& places,
                                                      const StepOfPlan& asked,
                                                      const FoundDecisions& found,
                                                      WorkspaceSource& workspaces);

}  // namespace stowage
