// recount_pytorch_plan: the validator of plans for PyTorch, which trusts nothing in a plan's file.
//
//   the step made anew from the plan's question
//     -> is it the plan's?         its hash, and what the file says of it
//     -> are the decisions right?  keys, shapes, bytes; the order of copies; who holds what is let
//                                  go; modules, parameters, parts, the update
//     -> the step as hooks run it  rewritten here, by code that the search does not share
//     -> are the totals true?      PyTorch's allocator is run, copies and kernels are timed
//
// A message begins with its place in the file. What cannot be proved from the file alone is said:
// it holds no certificate of the bounds on offloaded tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/document/step_document.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/validate/validate_plan.hpp"
#include "planner/validate_pytorch/hooked_seconds.hpp"

namespace stowage {

/// The step of the plan's question as it is now.
struct StepOfPlan {
  StepDocument document;
  std::int64_t batch = 1;  ///< of the whole step
  Card card;
  CheckSettings process;
  StepRates rates;
};

/// What of a plan the recount does not know, as "'a.0.conv', which runs again within 2 others";
/// nullopt: it knows all of it. Such a plan is not judged. `modules`: of the plan's step.
[[nodiscard]] std::optional<std::string> unknown_to_recount(
    const PytorchPlan& plan, const std::vector<RecordedModule>& modules);

/// `source`: the plan's text. Precondition: unknown_to_recount() is nullopt. All checks are
/// listed; what a failed one makes impossible to check is listed as failed, with that reason.
[[nodiscard]] PlanValidation recount_pytorch_plan(const PytorchPlan& plan, SourceTextPtr source,
                                                  const StepOfPlan& step,
                                                  WorkspaceSource& workspaces);

}  // namespace stowage
