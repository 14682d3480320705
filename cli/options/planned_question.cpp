#include "cli/options/planned_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/option.hpp"
#include "cli/options/setting_names.hpp"
#include "estimator/base/printable.hpp"
#include "estimator/document/fields.hpp"

namespace stowage {

namespace {

constexpr std::string_view asked_again_by = "export";

/// Whether a plan's file holds the word as it is.
bool can_be_kept(const std::string& word) {
  return word.size() <= longest_recorded_name && printable_line(word) == word;
}

}  // namespace

std::optional<PlannedQuestion> asked_question(const TypedWords& typed) {
  PlannedQuestion question{.model = typed.positionals.front(),
                           .settings = asked_settings(typed, asked_again_by)};
  question.settings.erase("batch");
  bool is_kept = question.model != "-" && !question.model.empty() && can_be_kept(question.model);
  for (const auto& [setting, values] : question.settings) {
    is_kept = is_kept && std::ranges::all_of(values, can_be_kept);
  }
  return is_kept ? std::optional(std::move(question)) : std::nullopt;
}

Result<Arguments> words_of(const PlannedQuestion& question, SourceTextPtr source,
                           const Arguments& typed) {
  const CommandSpec& command = *find_command(asked_again_by);
  std::map<std::string, std::vector<std::string>> given;
  for (const auto& [setting, values] : question.settings) {
    const std::string option = option_word(setting);
    const bool is_taken = std::ranges::find(command.options, option) != command.options.end();
    if (!is_taken || (find_option(option)->type == OptionType::flag) != values.empty()) {
      return failure(Diagnostic{
          .message = fmt::format("the plan's question has a setting '{}' {}", setting,
                                 is_taken ? "without a value, or with one that it does not take"
                                          : "that is not known"),
          .span = {.source = std::move(source)}});
    }
    given[option] = values;
  }
  if (const auto configs = typed.text("configs")) given["configs"] = {*configs};
  return read_values(command, given, {question.model});
}

}  // namespace stowage
