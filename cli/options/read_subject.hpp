// What questions share, from a command line's words: the model, the step, the card, the batch.
//
// Errors, as mistakes of the command line: options that exclude or want each other, values that
// only their meaning shows to be wrong; a folder of configurations that is not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "answers/question/card_question.hpp"
#include "answers/question/step_question.hpp"
#include "cli/options/arguments.hpp"
#include "estimator/base/batch.hpp"

namespace stowage {

[[nodiscard]] std::string text_or_empty(const Arguments& arguments, std::string_view option);

[[nodiscard]] Result<ModelQuestion> read_model(const Arguments& arguments);
[[nodiscard]] std::optional<TensorLayout> read_layout(const Arguments& arguments);
[[nodiscard]] Result<StepWishes> read_wishes(const Arguments& arguments);
/// `usual`: the runtime where none is asked for.
[[nodiscard]] Result<StepQuestion> read_step(const Arguments& arguments, Runtime usual);
/// Errors: the runtime has no such memory format.
[[nodiscard]] Result<void> check_layout(Runtime runtime, const StepWishes& wishes);

[[nodiscard]] Result<CardQuestion> read_card(const Arguments& arguments,
                                             const ConfigDirectory& configs);

/// --batch, where it was given and not merely defaulted.
[[nodiscard]] std::optional<std::int64_t> given_batch(const Arguments& arguments);
[[nodiscard]] std::optional<WholeBatch> of_whole_step(std::optional<std::int64_t> samples);

}  // namespace stowage
