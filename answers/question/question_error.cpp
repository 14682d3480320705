#include "answers/question/question_error.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace stowage {

Diagnostic question_error(std::string message, std::string hint) {
  static const auto source = std::make_shared<const SourceText>(
      SourceText{.name = std::string(question_place), .text = ""});
  return Diagnostic{
      .message = std::move(message), .span = {.source = source}, .hint = std::move(hint)};
}

std::string setting_name(std::string_view field) { return fmt::format("`{}`", field); }

Diagnostics about_question(Diagnostics mistakes) {
  for (Diagnostic& mistake : mistakes) {
    if (!mistake.span.source) mistake = question_error(mistake.message, mistake.hint);
  }
  return mistakes;
}

}  // namespace stowage
