// The plan's streamed modules, held against the step: which parameters each one brings, when.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/document/step_document.hpp"
#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/plan_places.hpp"

namespace stowage {

/// A module whose parameters are on the GPU only around its own kernels, in one piece.
struct PieceOfModule {
  NodeId first, last;                 ///< its kernels in forward
  NodeId first_backward;              ///< the first kernel of backward that reads it; none: none
  std::vector<StorageId> parameters;  ///< in the order in which they lie in the piece
  std::vector<std::int64_t> offsets;  ///< bytes, by parameter
  std::int64_t bytes = 0;             ///< of the piece
};

struct StreamedModules {
  Check check;  ///< "streamed parameters"
  std::vector<PieceOfModule> pieces;
};

/// The parameters exist, get no gradient, and are read by their module's kernels alone; pieces and
/// uploads are as large and as many as the plan says; modules stand in the order in which they run.
/// `step`: the document's, with the plan's modules checkpointed.
[[nodiscard]] StreamedModules find_streamed_modules(const PytorchPlan& plan,
                                                    const PlanPlaces& places,
                                                    const StepDocument& document,
                                                    const StepGraph& step);

}  // namespace stowage
