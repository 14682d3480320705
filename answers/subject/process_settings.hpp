// What a question's settings of the process around a step mean for the runtime that runs it.
#pragma once

#include "answers/question/step_question.hpp"
#include "answers/subject/asked_card.hpp"
#include "estimator/runtime/check_settings.hpp"

namespace stowage {

/// Errors: settings of another runtime than `runtime`; a CUDA release that cannot load lazily.
[[nodiscard]] Result<CheckSettings> process_settings(const StepQuestion& question, Runtime runtime,
                                                     const AskedCard& card);

}  // namespace stowage
