// A step or a plan to be looked at: its trace, its memory as a drawing, its sizes as tables, and
// the history of PyTorch's allocator. Nothing of it is read back as a step or as a plan.
#pragma once

#include "answers/exporting/export.hpp"
#include "estimator/base/diagnostic.hpp"
#include "planner/export/plan_text.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// The file of a picture's form (ExportFormRow::is_picture) for a model's step on a card. Errors:
/// those of `check`; memory-snapshot of another runtime than PyTorch; a step without kernels.
[[nodiscard]] Result<ExportAnswer> picture_of_step(const ExportQuestion& question);

/// Errors: the plan is for another machine than one GPU and its host; memory-snapshot.
[[nodiscard]] Result<PlanText> picture_of_plan(ExportForm form, const Plan& plan);

}  // namespace stowage
