// The question of a plan for PyTorch, as its file keeps it: by the settings' names, so that an
// export can ask it again.
#pragma once

#include <optional>

#include "cli/options/advice.hpp"
#include "cli/options/arguments.hpp"
#include "estimator/base/diagnostic.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

/// What the words say of the model, the step and the card, but for the batch, which the plan says
/// itself. None: the model came through a pipe; a word cannot stand in a plan's file.
[[nodiscard]] std::optional<PlannedQuestion> asked_question(const TypedWords& typed);

/// The same as words of `export`; `typed`: what is given beside the plan, whose folder of
/// configurations counts. Errors: a setting that `export` does not take, or not with these values.
[[nodiscard]] Result<Arguments> words_of(const PlannedQuestion& question, SourceTextPtr source,
                                         const Arguments& typed);

}  // namespace stowage
