// The only source that sees CLI11 (six seconds of compiling). CLI11 tells options, values and
// positionals apart; what they may be is ours to say, so that every message has one style.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/options/arguments.hpp"
#include "cli/options/option.hpp"
#include "cli/options/other_words.hpp"

namespace stowage {

namespace {

const OptionSpec* option_of(const CommandSpec& command, std::string_view word) {
  for (const std::string_view name : command.options) {
    const OptionSpec* option = find_option(name);
    const auto is_name = [&](std::string_view candidate) {
      return word.substr(0, 2) == "--" && word.substr(2) == candidate;
    };
    const bool is_long = is_name(name) || std::ranges::any_of(option->aliases, is_name);
    const bool is_short = word.size() == 2 && word[0] == '-' && option->short_name != 0 &&
                          word[1] == option->short_name;
    if (is_long || is_short) return option;
  }
  return nullptr;
}

bool looks_like_option(std::string_view word) { return word.size() > 1 && word[0] == '-'; }

bool looks_like_number(std::string_view text) {
  constexpr std::string_view letters = "0123456789.+-";
  const bool has_digit = std::ranges::any_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return has_digit && text.find_first_not_of(letters) == std::string_view::npos;
}

// Whether a word is a value of an option that may stand alone, by what stands before its comma.
bool is_value_of(const OptionSpec& option, std::string_view word) {
  const std::string_view first = word.substr(0, word.find(','));
  return std::ranges::any_of(option.words, [&](std::string_view known) {
    if (known == any_number) return looks_like_number(first);
    return known.ends_with('=') ? first.starts_with(known) : first == known;
  });
}

// The value of an option that may stand alone, which is `at` among the words; "": there is none.
std::string value_behind(const OptionSpec& option, std::span<const std::string> words,
                         std::size_t at) {
  if (at + 1 == words.size()) return {};
  const std::string& next = words[at + 1];
  return is_value_of(option, next) ? next : std::string();
}

// "--batch -5" would be read as an option '-5', and what follows an option that may stand alone as
// its value: join what is plainly meant as a value.
std::vector<std::string> join_values(const CommandSpec& command,
                                     std::span<const std::string> words) {
  std::vector<std::string> joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const OptionSpec* option = option_of(command, words[i]);
    if (option != nullptr && !option->alone.empty()) {
      const std::string value = value_behind(*option, words, i);
      joined.push_back(fmt::format("--{}={}", option->name, value.empty() ? option->alone : value));
      if (!value.empty()) ++i;
      continue;
    }
    const bool takes_next =
        option != nullptr && option->type != OptionType::flag && i + 1 < words.size() &&
        words[i + 1].size() > 1 && words[i + 1][0] == '-' &&
        (std::isdigit(static_cast<unsigned char>(words[i + 1][1])) != 0 || words[i + 1][1] == '.');
    if (takes_next) {
      joined.push_back(fmt::format("--{}={}", option->name, words[i + 1]));
      ++i;
    } else {
      joined.push_back(words[i]);
    }
  }
  return joined;
}

// An option that wants a value and has none, or none that is not another option.
Diagnostics missing_values(const CommandSpec& command, const std::vector<std::string>& words) {
  Diagnostics mistakes;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") break;
    const std::size_t equals = words[i].find('=');
    const std::string word = words[i].substr(0, equals);
    const OptionSpec* option = option_of(command, word);
    if (option == nullptr) continue;
    const bool flag = option->type == OptionType::flag;
    if (equals != std::string::npos) {
      if (flag) {
        mistakes.push_back(command_line_error(fmt::format("--{} takes no value", option->name)));
      } else if (equals + 1 == words[i].size()) {
        mistakes.push_back(
            command_line_error(fmt::format("--{} needs a value: {}", option->name, option->value)));
      }
      continue;
    }
    if (flag) continue;
    if (i + 1 == words.size() || looks_like_option(words[i + 1])) {
      mistakes.push_back(
          command_line_error(fmt::format("--{} needs a value: {}", option->name, option->value)));
    } else {
      ++i;
    }
  }
  return mistakes;
}

Diagnostic unknown_option(const CommandSpec& command, std::string_view word) {
  std::string_view name = word.substr(word.substr(0, 2) == "--" ? 2 : 1);
  name = name.substr(0, name.find('='));
  const std::string_view shown = word.substr(0, word.find('='));
  std::string hint = hint_for_other_word(command, name);
  if (!hint.empty()) {
    // What it is here has been said.
  } else if (const auto best = closest(name, command.options)) {
    hint = fmt::format("did you mean '--{}'?", *best);
  } else if (find_option(name) != nullptr) {
    hint = fmt::format("other commands take it; see stowage {} --help", command.name);
  } else {
    hint = fmt::format("see stowage {} --help", command.name);
  }
  return command_line_error(fmt::format("stowage {} has no option '{}'", command.name, shown),
                            std::move(hint));
}

}  // namespace

Result<Arguments> parse_arguments(const CommandSpec& command, std::span<const std::string> words) {
  std::vector<std::string> joined = join_values(command, in_own_words(command, words));
  if (Diagnostics mistakes = missing_values(command, joined); !mistakes.empty()) {
    return tl::unexpected(std::move(mistakes));
  }

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::pair<std::string, CLI::Option*>> added;
  for (const std::string_view name : command.options) {
    const OptionSpec* option = find_option(name);
    std::string names = fmt::format("--{}", name);
    if (option->short_name != 0) names += fmt::format(",-{}", option->short_name);
    for (const std::string_view alias : option->aliases) names += fmt::format(",--{}", alias);
    CLI::Option* const handle =
        option->type == OptionType::flag
            ? app.add_flag(names)
            : app.add_option(names, values[std::string(name)])->take_all()->allow_extra_args(false);
    added.emplace_back(name, handle);
  }
  std::vector<std::string> reversed(joined.rbegin(), joined.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return failure(command_line_error(error.what()));
  }

  Diagnostics mistakes;
  std::vector<std::string> positionals;
  for (const std::string& word : app.remaining()) {
    if (looks_like_option(word)) {
      mistakes.push_back(unknown_option(command, word));
    } else {
      positionals.push_back(word);
    }
  }
  // What follows an unknown option may have been its value: say no more than is known.
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));

  std::map<std::string, std::vector<std::string>> given;
  for (const auto& [name, handle] : added) {
    if (handle->count() > 0) given[name] = values[name];
  }
  return read_values(command, given, std::move(positionals));
}

}  // namespace stowage
