// The sizes of a step, or a plan, as tables in Markdown, for an issue or a comment.
#pragma once

#include <string>

#include "answers/sizing/check.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// "resnet18, batch 64, training with sgd, fp32"
[[nodiscard]] std::string step_in_words(const CheckAnswer& sizes);

/// The verdict, what is live at the peak and beside it on the card, the largest tensors with their
/// layers, the peaks of loading and of the first and the later steps.
[[nodiscard]] std::string markdown_of(const CheckAnswer& sizes, const std::string& written_by);

/// The totals with their bounds, what is copied by class, what the plan does.
/// Precondition: two_sides_mismatch(plan.machine) == "".
[[nodiscard]] std::string markdown_of(const Plan& plan);

}  // namespace stowage
