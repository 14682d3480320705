// What whoever asked should know beside the answer, gathered in one place for every question.
#pragma once

#include "answers/subject/asked_card.hpp"
#include "answers/subject/workspaces.hpp"
#include "estimator/document/step_document.hpp"

namespace stowage {

/// That a recorded step lacks the update of parameters, and how it is added; else nothing.
[[nodiscard]] Diagnostics notes_on_update(const StepDocument& document);

/// Warnings of the description and of settings that mean nothing in this step; an update that the
/// step lacks; names in a step's file that are nearly those of kernels.
[[nodiscard]] Diagnostics notes_on_step(const StepDocument& document);

/// First those on the step, then on the card, then on the workspaces that have been asked for.
[[nodiscard]] Diagnostics gathered_notes(Diagnostics on_step, const AskedCard& card,
                                         const Workspaces& workspaces);

/// Appends.
void append_notes(Diagnostics& notes, Diagnostics more);

}  // namespace stowage
