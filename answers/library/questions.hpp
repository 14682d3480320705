// From the library's specs to the questions that the rooms below answer.
#pragma once

#include <stowage/model.hpp>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"

namespace stowage {

/// Errors: the catalogues are not found, a precision or a fine-tuning that there is not.
[[nodiscard]] Result<ModelQuestion> model_question(const ModelSpec& model);
/// `usual`: the runtime where none is said. Errors also: a runtime or a version that there is not,
/// a number of GPUs or a stage out of its range.
[[nodiscard]] Result<StepQuestion> step_question(const StepSpec& step,
                                                 Runtime usual = default_runtime);
/// Errors: neither a name nor a size; a size below 0.
[[nodiscard]] Result<CardQuestion> card_question(const GpuSpec& gpu,
                                                 const ConfigDirectory& configs);

}  // namespace stowage
