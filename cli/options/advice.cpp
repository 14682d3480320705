#include "cli/options/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "answers/question/shell_word.hpp"
#include "cli/options/command.hpp"
#include "cli/options/option.hpp"
#include "cli/options/setting_names.hpp"

namespace stowage {

namespace {

// What is said about the question, not about how it is answered.
bool is_repeated(const OptionSpec& option) {
  return option.group == OptionGroup::model || option.group == OptionGroup::training ||
         option.group == OptionGroup::device;
}

bool contains(const std::vector<std::string>& settings, std::string_view option) {
  return std::ranges::any_of(
      settings, [&](const std::string& setting) { return option_word(setting) == option; });
}

/// The value that the option gets instead; null: it keeps its own.
const std::string* changed_value(const AdviceChanges& changes, std::string_view option) {
  const auto found = std::ranges::find_if(
      changes.set, [&](const auto& one) { return option_word(one.first) == option; });
  return found == changes.set.end() ? nullptr : &found->second;
}

std::string option_text(const OptionSpec& option, std::string_view value) {
  const std::string name = fmt::format(" --{}", option.name);
  if (option.type == OptionType::flag) return name;
  // "--seq -5" reads as two options.
  const char between = value.starts_with('-') ? '=' : ' ';
  return name + between + shell_word(value);
}

}  // namespace

std::string advice(const TypedWords& typed, std::string_view command,
                   const AdviceChanges& changes) {
  std::string line = fmt::format("stowage {}", command);
  for (const std::string& word : typed.positionals) line += ' ' + shell_word(word);
  for (const std::string_view name : find_command(command)->options) {
    const OptionSpec& option = *find_option(name);
    if (const std::string* const changed = changed_value(changes, name)) {
      line += option_text(option, *changed);
      continue;
    }
    const auto given = typed.options.find(std::string(name));
    const bool repeated = given != typed.options.end() &&
                          (is_repeated(option) || contains(changes.repeat, name)) &&
                          !contains(changes.drop, name);
    if (!repeated) continue;
    for (const std::string& value : given->second) line += option_text(option, value);
  }
  return line;
}

std::map<std::string, std::vector<std::string>> asked_settings(
    const TypedWords& typed, std::string_view command, const std::vector<std::string>& besides) {
  std::map<std::string, std::vector<std::string>> settings;
  for (const std::string_view name : find_command(command)->options) {
    const auto given = typed.options.find(std::string(name));
    const bool is_wanted = is_repeated(*find_option(name)) || contains(besides, name);
    if (given == typed.options.end() || !is_wanted) continue;
    std::string setting(name);
    std::ranges::replace(setting, '-', '_');
    settings[std::move(setting)] = given->second;
  }
  return settings;
}

}  // namespace stowage
