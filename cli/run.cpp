#include "cli/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/arguments.hpp"
#include "cli/help.hpp"
#include "cli/option.hpp"
#include "cli/version.hpp"
#include "gpu_probe/cudnn/library_places.hpp"

namespace stowage {

namespace {

void complain(const Diagnostics& diagnostics) {
  const std::string text = render(diagnostics);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// A reader that went away (head, less) is no mistake of anybody's; a full disk is one.
ExitCode print(std::string_view text, ExitCode exit_code) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return exit_code;
  fmt::print(stderr, "error: cannot write the result: {}\n", std::strerror(errno));
  return ExitCode::bad_input;
}

bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

ExitCode unknown_command(const std::string& word) {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) names.push_back(command.name);
  std::string hint = did_you_mean(word, names);
  if (hint.empty()) hint = "stowage --help lists the commands";
  complain({command_line_error(fmt::format("there is no command '{}'", word), hint)});
  return ExitCode::bad_input;
}

bool contains(std::span<const std::string> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

ExitCode run_program(std::span<const std::string> words) {
  if (words.empty()) {
    const std::string help = program_help();
    std::fwrite(help.data(), 1, help.size(), stderr);
    return ExitCode::bad_input;
  }
  if (words[0] == "-h" || words[0] == "--help") return print(program_help(), ExitCode::yes);
  if (words[0] == "--version")
    return print(fmt::format("stowage {}\n", program_version), ExitCode::yes);

  const CommandSpec* command = find_command(words[0]);
  if (command == nullptr) return unknown_command(words[0]);
  words = words.subspan(1);
  if (contains(words, "--help")) return print(long_help(*command), ExitCode::yes);
  if (contains(words, "-h")) return print(short_help(*command), ExitCode::yes);

  const Result<Arguments> arguments = parse_arguments(*command, words);
  if (!arguments) {
    complain(arguments.error());
    return ExitCode::bad_input;
  }
  if (const auto folder = arguments->text("cudnn")) {
    if (!has_cudnn(*folder)) {
      complain({command_line_error(
          fmt::format("--cudnn: there is no {} in '{}'", cudnn_file, *folder),
          "cuDNN's root, its lib/ or the Python environment that it is installed in")});
      return ExitCode::bad_input;
    }
    use_cudnn_in(*folder);
  }
  const Result<Answer> answer = command->run(*arguments);
  if (!answer) {
    complain(answer.error());
    return ExitCode::bad_input;
  }
  complain(answer->report.notes);
  const Format format = format_of(arguments->text("format").value_or("table"));
  const std::string text = render(answer->report, format, wants_colour());
  return print(text, answer->exit_code);
}

}  // namespace stowage
