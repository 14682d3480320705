// The command line's names for what answers speak of: options for settings (answers/question/
// question_error.hpp) and for cures (estimator/base/cure.hpp). No room below knows them.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/cure.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// "give a smaller --batch"
[[nodiscard]] std::string_view in_options(Cure cure);

/// "context-length", as the command line spells the setting `context_length`; without dashes
/// before.
[[nodiscard]] std::string option_word(std::string_view setting);

/// The text with options in the place of the words for cures, and of settings' names:
/// "--eval-batch" for "`eval_batch`". What stands between backquotes and is no setting stays.
[[nodiscard]] std::string in_options(std::string text);

/// The diagnostics, their texts with options; so are the places of values from options, and the
/// place of mistakes in the question.
[[nodiscard]] Diagnostics in_options(Diagnostics diagnostics);

}  // namespace stowage
