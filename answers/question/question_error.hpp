// Mistakes in a question: in what was asked, and not in a file.
//
// A text names a setting as the field that holds it, between backquotes: "`eval_batch` is an
// evaluation beside training". Whoever took the question puts his own name for the setting there:
// the command line writes --eval-batch (cli/options/setting_names.hpp).
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// The name of the source text of a mistake in a question, which has no line.
inline constexpr std::string_view question_place = "<question>";

/// "<question>: error: MESSAGE" with its hint.
[[nodiscard]] Diagnostic question_error(std::string message, std::string hint = {});

/// "`eval_batch`", as texts name a setting.
[[nodiscard]] std::string setting_name(std::string_view field);

/// The mistakes of a choice of settings: those without a place are mistakes in the question.
[[nodiscard]] Diagnostics about_question(Diagnostics mistakes);

}  // namespace stowage
