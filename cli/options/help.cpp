#include "cli/options/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/options/option.hpp"

namespace stowage {

namespace {

constexpr std::size_t screen_width = 80;
constexpr std::size_t screen_height = 24;
constexpr std::size_t usual_options = 12;

std::string label(const OptionSpec& option) {
  const std::string brief =
      option.short_name != 0 ? fmt::format("-{}, ", option.short_name) : std::string();
  const std::string value = option.value.empty() ? "" : fmt::format(" {}", option.value);
  return fmt::format("{}--{}{}", brief, option.name, value);
}

std::string default_of(const OptionSpec& option) {
  return std::string(option.default_value.empty() ? option.default_note : option.default_value);
}

std::string usage(const CommandSpec& command) {
  std::string line = fmt::format("stowage {}", command.name);
  for (const PositionalSpec& positional : command.positionals) {
    line += positional.required ? fmt::format(" {}", positional.name)
                                : fmt::format(" [{}]", positional.name);
    if (positional.repeats) line += "...";
  }
  return line + (command.options.empty() ? "" : " [options]");
}

// `text` in lines of at most `width`, broken at spaces; later lines start with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    const bool first = out.empty() || out.back() == ' ';
    if (column > indent && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

// "also --batch-size; tf: tensorflow": the option's other names, and its values'.
std::string also(const OptionSpec& option) {
  std::vector<std::string> words;
  for (const std::string_view alias : option.aliases) words.push_back(fmt::format("--{}", alias));
  for (const auto& [word, meaning] : option.synonyms) {
    words.push_back(fmt::format("{} for {}", word, meaning));
  }
  return words.empty() ? "" : fmt::format("; also {}", fmt::join(words, ", "));
}

std::string full_text(const OptionSpec& option, bool with_other_names) {
  std::string text(option.help);
  if (!option.choices.empty()) text += fmt::format(": {}", fmt::join(option.choices, ", "));
  if (with_other_names) text += also(option);
  if (const std::string fallback = default_of(option); !fallback.empty()) {
    text += fmt::format(" [{}]", fallback);
  }
  return text;
}

std::size_t label_width(const CommandSpec& command) {
  std::size_t width = 0;
  for (const std::string_view name : command.options) {
    width = std::max(width, label(*find_option(name)).size());
  }
  return width;
}

// One line: what does not fit is left out, whole words at a time.
std::string one_line(const OptionSpec& option, std::size_t labels) {
  const std::size_t room = screen_width - 2 - labels - 2;
  std::string text = full_text(option, false);
  if (text.size() > room) text = std::string(option.help);
  if (text.size() > room) text = text.substr(0, text.rfind(' ', room - 3)) + "...";
  return fmt::format("  {:{}}  {}\n", label(option), labels, text);
}

}  // namespace

std::string program_help() {
  std::string out =
      "stowage: what a neural network weighs in GPU memory, and where to put it\n\n"
      "  stowage COMMAND [options]        stowage COMMAND -h\n\n";
  for (const CommandSpec& command : command_table()) {
    out += fmt::format("  {:9} {}\n", command.name, command.summary);
  }
  out +=
      "\nOf your own PyTorch code, with the Python part:\n"
      "  record    one step as a file, for check, batch and plan\n"
      "  export    a network's layers as a description\n"
      "  fit       record a script, plan it, and say the lines to add\n"
      "\nFor example:\n  stowage check vgg16 --gpu rtx3090 --batch 64\n";
  return out;
}

std::string short_help(const CommandSpec& command) {
  std::string out = fmt::format("{}\n  {}\n", usage(command), command.summary);
  for (const PositionalSpec& positional : command.positionals) {
    out += fmt::format("  {}: {}\n", positional.name, positional.help);
  }
  out += fmt::format("\nFor example:\n  {}\n", command.examples.front());
  if (command.options.empty()) return out;

  out += '\n';
  const auto lines = static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n'));
  const std::size_t room = screen_height - lines - 2;  // a blank line and the last one
  const std::size_t shown = std::min(room, command.options.size());
  for (std::size_t i = 0; i < shown; ++i) {
    out += one_line(*find_option(command.options[i]), label_width(command));
  }
  out += fmt::format("\nAll {} options, with their defaults: stowage help {} --all\n",
                     command.options.size(), command.name);
  return out;
}

std::string long_help(const CommandSpec& command, bool all) {
  std::string out =
      fmt::format("{}\n\n{}\n", usage(command), wrapped(command.details, screen_width, 0));
  if (!command.positionals.empty()) out += '\n';
  for (const PositionalSpec& positional : command.positionals) {
    const std::size_t indent = 2 + positional.name.size() + 2;
    out +=
        fmt::format("  {}  {}\n", positional.name, wrapped(positional.help, screen_width, indent));
  }
  const std::size_t labels = label_width(command);
  const auto described = [&](const OptionSpec& option) {
    return fmt::format("  {:{}}  {}\n", label(option), labels,
                       wrapped(full_text(option, true), screen_width, labels + 4));
  };
  const bool is_short = !all && command.options.size() > usual_options + 8;
  if (is_short) {
    out += "\nThe usual options\n";
    for (std::size_t i = 0; i < usual_options; ++i) {
      out += described(*find_option(command.options[i]));
    }
    out += fmt::format("\n{} more: stowage help {} --all\n", command.options.size() - usual_options,
                       command.name);
  }
  for (int g = 0; !is_short && g < option_group_count; ++g) {
    const auto group = static_cast<OptionGroup>(g);
    std::string section;
    for (const std::string_view name : command.options) {
      const OptionSpec& option = *find_option(name);
      if (option.group != group) continue;
      section += described(option);
    }
    if (!section.empty()) out += fmt::format("\n{}\n{}", to_string(group), section);
  }
  out += "\nFor example:\n";
  for (const std::string_view example : command.examples) out += fmt::format("  {}\n", example);
  return out;
}

std::string command_reference() {
  std::string out =
      "# Commands\n\n"
      "Made from the program's own tables by `stowage help --format markdown`; do not edit.\n\n"
      "Results go to stdout, everything else to stderr. Sizes are read and printed with their\n"
      "units: `8GiB` is 8 * 2^30 bytes, `8GB` is 8 * 10^9. JSON holds bytes as integers and\n"
      "durations in seconds, and starts with `schema_version`. Colour appears on a terminal only\n"
      "and not where `NO_COLOR` is set; there, tables keep to its width, what takes long says so,\n"
      "and `check` and `batch` draw memory as bars, with block characters where the locale is "
      "UTF-8.\n"
      "`COLUMNS` sets the width, for a pipe or a file too. Control characters in names\n"
      "are printed as escapes: `\\x1b`.\n\n"
      "Under `--format json` an error is JSON too: exit code 2, nothing on stdout, and on stderr "
      "one\n"
      "object `{schema_version, diagnostics: [...]}`, each with `severity` (`error`, `warning`,\n"
      "`note`), `message`, `file`, `line`, `column`, `hint` and `notes`; what is not known is "
      "null, and\n"
      "`file` is `<command line>` for the command line itself. What an answer rests on (the card "
      "that\n"
      "was assumed, workspaces by a rule) stands on stderr, and as such objects in its `notes`.\n\n"
      "Whatever is asked about a card's memory, the JSON has `device`, `verdict` (`fits` or\n"
      "`does_not_fit`), `device_bytes`, `headroom_bytes` and `notes`, and of one model `settings`; "
      "a "
      "table\n"
      "has null where its rows have their own. `plan` has `verdict`, `plans`, `chosen` and\n"
      "`budget_bytes` with a plan or without, `validate` has `verdict` (`valid` or "
      "`not_valid`).\n\n"
      "A file written with `-o` appears whole or not at all; a symbolic link is followed. The "
      "first\n"
      "Ctrl-C during `stowage plan` writes the best plan so far, the second one ends the "
      "program.\n\n"
      "| exit code | meaning |\n|---:|---|\n"
      "| 0 | yes |\n"
      "| 1 | a clean no: does not fit, an invalid plan, numbers outside the tolerance |\n"
      "| 2 | bad usage, bad input, a result that cannot be written, or more memory needed than the "
      "machine gives; a full stderr changes no code |\n"
      "| 3 | a GPU is needed that is not there |\n"
      "| 70 | a bug in stowage |\n"
      "| 130 | interrupted; of a plan: the best so far was taken |\n"
      "| 143 | ended by SIGTERM |\n";
  for (const CommandSpec& command : command_table()) {
    out += fmt::format("\n## stowage {}\n\n{}\n\n```\n{}\n", command.name, command.details,
                       usage(command));
    for (const std::string_view example : command.examples) out += fmt::format("{}\n", example);
    out += "```\n";
    if (command.options.empty()) continue;
    out += "\n| option | meaning | default | unit |\n|---|---|---|---|\n";
    for (const std::string_view name : command.options) {
      const OptionSpec& option = *find_option(name);
      std::string meaning(option.help);
      if (!option.choices.empty()) meaning += fmt::format(": {}", fmt::join(option.choices, ", "));
      meaning += also(option);
      out += fmt::format("| `{}` | {} | {} | {} |\n", label(option), meaning, default_of(option),
                         option.unit);
    }
  }
  return out;
}

}  // namespace stowage
