// A plan for PyTorch, counted again: the step is made anew from what the plan's file says that it
// was made of.
#pragma once

#include <vector>

#include "answers/planning/plan_question.hpp"
#include "answers/subject/named_plan.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

struct PytorchPlanQuestion {
  NamedPytorchPlan named;
  PlanQuestion made_of;
};

/// recount_pytorch_plan's checks. Errors: what the plan was made of cannot be found, read or sized.
[[nodiscard]] Result<std::vector<Check>> recounted(const PytorchPlanQuestion& question);

}  // namespace stowage
