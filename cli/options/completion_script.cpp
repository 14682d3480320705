#include "cli/options/completion_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/option.hpp"

namespace stowage {

namespace {

/// A command that runs in Python, which the tables here do not have.
struct PythonCommand {
  std::string_view name, summary;
};
constexpr PythonCommand python_commands[] = {
    {"record", "one step of PyTorch code as a file"},
    {"fit", "record a script, plan it, and say the lines to add"}};

/// Between single quotes of bash and zsh; fish takes it as well.
std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// Of an item of zsh's _describe: a colon ends its name.
std::string described(std::string_view name, std::string_view text) {
  std::string item;
  for (const char c : name) item += c == ':' ? std::string("\\:") : std::string(1, c);
  return in_quotes(fmt::format("{}:{}", item, text));
}

/// "--precision", "--dtype", "-b"
std::vector<std::string> spellings(const OptionSpec& option) {
  std::vector<std::string> words{fmt::format("--{}", option.name)};
  for (const std::string_view alias : option.aliases) words.push_back(fmt::format("--{}", alias));
  if (option.short_name != 0) words.push_back(fmt::format("-{}", option.short_name));
  return words;
}

/// What may stand behind an option: its choices; "": whatever is typed, or a file.
std::string values_of(const OptionSpec& option) {
  return fmt::format("{}", fmt::join(option.choices, " "));
}

std::string command_words() {
  std::string words;
  for (const CommandSpec& command : command_table()) words += fmt::format("{} ", command.name);
  for (const PythonCommand& command : python_commands) words += fmt::format("{} ", command.name);
  words.pop_back();
  return words;
}

std::string option_words(const CommandSpec& command) {
  std::string words = "--help";
  for (const std::string_view name : command.options) words += fmt::format(" --{}", name);
  return words;
}

/// For each option of any command that takes one of a few words: `entry(spellings, words)`.
template <typename Entry>
void for_each_choice(const Entry& entry) {
  for (const OptionSpec& option : option_table()) {
    if (const std::string values = values_of(option); !values.empty()) {
      entry(fmt::format("{}", fmt::join(spellings(option), "|")), values);
    }
  }
}

/// A line of roff's text: no control line, no escape, hyphens that may be copied.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string roff_option(const OptionSpec& option) {
  std::string label;
  if (option.short_name != 0) label += fmt::format("\\fB\\-{}\\fR, ", option.short_name);
  label += fmt::format("\\fB\\-\\-{}\\fR", roff(option.name));
  if (!option.value.empty()) label += fmt::format(" \\fI{}\\fR", roff(option.value));
  std::string text = roff(option.help);
  if (!option.choices.empty())
    text += ": " + roff(fmt::format("{}", fmt::join(option.choices, ", ")));
  const std::string_view fallback =
      option.default_value.empty() ? option.default_note : option.default_value;
  if (!fallback.empty()) text += fmt::format(" [{}]", roff(fallback));
  return fmt::format(".TP\n{}\n{}\n", label, text);
}

}  // namespace

std::string bash_completion() {
  std::string out = fmt::format(
      "# bash completion for stowage: source <(stowage completion bash)\n"
      "_stowage() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  local program=${{COMP_WORDS[0]}} words=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case $before in\n"
      "    --gpu) words=$(\"$program\" completion gpus 2>/dev/null) ;;\n",
      in_quotes(command_words()));
  for_each_choice([&](const std::string& names, const std::string& values) {
    out += fmt::format("    {}) words={} ;;\n", names, in_quotes(values));
  });
  out +=
      "  esac\n"
      "  if [[ -n $words ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  if [[ $word == -* ]]; then\n"
      "    case ${COMP_WORDS[1]} in\n";
  for (const CommandSpec& command : command_table()) {
    out += fmt::format("      {}) words={} ;;\n", command.name, in_quotes(option_words(command)));
  }
  out +=
      "    esac\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  words=$(\"$program\" completion models 2>/dev/null)\n"
      "  mapfile -t COMPREPLY < <(\n"
      "    compgen -W \"$words\" -- \"$word\"\n"
      "    compgen -f -- \"$word\"\n"
      "  )\n"
      "}\n"
      "complete -o filenames -F _stowage stowage\n";
  return out;
}

std::string zsh_completion() {
  std::string out =
      "#compdef stowage\n"
      "# zsh completion for stowage: stowage completion zsh > a folder of $fpath/_stowage\n"
      "_stowage() {\n"
      "  local -a items\n"
      "  if (( CURRENT == 2 )); then\n"
      "    items=(\n";
  for (const CommandSpec& command : command_table()) {
    out += fmt::format("      {}\n", described(command.name, command.summary));
  }
  for (const PythonCommand& command : python_commands) {
    out += fmt::format("      {}\n", described(command.name, command.summary));
  }
  out +=
      "    )\n"
      "    _describe command items\n"
      "    return\n"
      "  fi\n"
      "  case $words[CURRENT-1] in\n"
      "    --gpu) compadd -- ${(f)\"$($words[1] completion gpus 2>/dev/null)\"}; return ;;\n";
  for_each_choice([&](const std::string& names, const std::string& values) {
    out += fmt::format("    {}) compadd -- {}; return ;;\n", names, values);
  });
  out +=
      "  esac\n"
      "  if [[ $words[CURRENT] == -* ]]; then\n"
      "    case $words[2] in\n";
  for (const CommandSpec& command : command_table()) {
    if (command.options.empty()) continue;
    out += fmt::format("      {}) items=(\n", command.name);
    for (const std::string_view name : command.options) {
      out += fmt::format("        {}\n",
                         described(fmt::format("--{}", name), find_option(name)->help));
    }
    out += "      ) ;;\n";
  }
  out +=
      "    esac\n"
      "    _describe option items\n"
      "    return\n"
      "  fi\n"
      "  compadd -- ${(f)\"$($words[1] completion models 2>/dev/null)\"}\n"
      "  _files\n"
      "}\n"
      "compdef _stowage stowage\n";
  return out;
}

std::string fish_completion() {
  std::string out =
      "# fish completion for stowage: stowage completion fish > "
      "~/.config/fish/completions/stowage.fish\n";
  const auto add_command = [&](std::string_view name, std::string_view summary) {
    out += fmt::format("complete -c stowage -n __fish_use_subcommand -f -a {} -d {}\n", name,
                       in_quotes(summary));
  };
  for (const CommandSpec& command : command_table()) add_command(command.name, command.summary);
  for (const PythonCommand& command : python_commands) add_command(command.name, command.summary);
  for (const CommandSpec& command : command_table()) {
    for (const std::string_view name : command.options) {
      const OptionSpec& option = *find_option(name);
      std::string line = fmt::format(
          "complete -c stowage -n '__fish_seen_subcommand_from {}' -l {}", command.name, name);
      if (option.short_name != 0) line += fmt::format(" -s {}", option.short_name);
      if (name == "gpu") {
        line += " -xa '(stowage completion gpus 2>/dev/null)'";
      } else if (const std::string values = values_of(option); !values.empty()) {
        line += fmt::format(" -xa {}", in_quotes(values));
      } else if (option.type != OptionType::flag) {
        line += " -r";
      }
      out += fmt::format("{} -d {}\n", line, in_quotes(option.help));
    }
    if (!command.positionals.empty() && command.positionals.front().name == "MODEL") {
      out += fmt::format(
          "complete -c stowage -n '__fish_seen_subcommand_from {}' -a "
          "'(stowage completion models 2>/dev/null)'\n",
          command.name);
    }
  }
  return out;
}

std::string manual_page() {
  std::string out =
      ".TH STOWAGE 1\n"
      ".SH NAME\n"
      "stowage \\- what a neural network weighs in GPU memory, and where to put it\n"
      ".SH SYNOPSIS\n"
      ".B stowage\n"
      "\\fICOMMAND\\fR [\\fIoptions\\fR]\n"
      ".SH COMMANDS\n";
  std::set<std::string_view> used;
  for (const CommandSpec& command : command_table()) {
    std::string line = fmt::format("\\fBstowage {}\\fR", command.name);
    for (const PositionalSpec& positional : command.positionals) {
      line += positional.required ? fmt::format(" \\fI{}\\fR", positional.name)
                                  : fmt::format(" [\\fI{}\\fR]", positional.name);
    }
    out += fmt::format(".TP\n{}\n{}\n", line, roff(command.details));
    if (command.options.empty()) continue;
    out += "Options:";
    for (const std::string_view name : command.options) {
      used.insert(name);
      out += fmt::format(" \\-\\-{}", roff(name));
    }
    out += "\n";
  }
  for (int g = 0; g < option_group_count; ++g) {
    const auto group = static_cast<OptionGroup>(g);
    out += fmt::format(".SH \"{}\"\n", roff(to_string(group)));
    for (const OptionSpec& option : option_table()) {
      if (option.group == group && used.contains(option.name)) out += roff_option(option);
    }
  }
  out += ".SH EXAMPLES\n.nf\n";
  for (const CommandSpec& command : command_table()) {
    for (const std::string_view example : command.examples) out += roff(example) + "\n";
  }
  out +=
      ".fi\n"
      ".SH \"EXIT STATUS\"\n"
      "0: yes; 1: a clean no; 2: usage or bad input; 3: a GPU is needed that is not there; 70: a "
      "bug\n";
  return out;
}

}  // namespace stowage
