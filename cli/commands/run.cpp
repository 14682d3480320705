#include "cli/commands/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "answers/question/question_error.hpp"
#include "answers/question/version.hpp"
#include "cli/commands/python_part.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/help.hpp"
#include "cli/options/named_libraries.hpp"
#include "cli/options/option.hpp"
#include "cli/options/request.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/output/diagnostics_json.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/terminal.hpp"
#include "gpu_probe/device/present_card.hpp"

namespace stowage {

namespace {

// What cannot be written to stderr is lost: the exit code still tells.
void complain(const Diagnostics& diagnostics) {
  write_quietly(stderr, render(in_options(diagnostics)));
}

ExitCode refuse(const Diagnostics& mistakes, Format format) {
  if (format == Format::json) {
    write_quietly(stderr, diagnostics_json(in_options(mistakes)).text());
  } else {
    complain(mistakes);
  }
  return ExitCode::bad_input;
}

// A reader that went away (head, less) is no mistake of anybody's; a full disk is one.
ExitCode print(std::string_view text, ExitCode exit_code) {
  if (write_quietly(stdout, text) || errno == EPIPE) return exit_code;
  const std::string why = std::strerror(errno);
  complain({{.message = fmt::format("cannot write the result: {}", why)}});
  return ExitCode::bad_input;
}

Screen screen() {
  const char* const no_color = std::getenv("NO_COLOR");
  const bool wants_colour = no_color == nullptr || *no_color == '\0';
  return {.is_terminal = isatty(STDOUT_FILENO) != 0,
          .charts = is_terminal(STDOUT_FILENO),
          .unicode = writes_unicode(),
          .colour = wants_colour && is_terminal(STDOUT_FILENO),
          .width = output_width(STDOUT_FILENO)};
}

Diagnostics unknown_command(std::span<const std::string> words) {
  if (auto python = python_command(words)) return {*std::move(python)};
  const std::string& word = words.front();
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) names.push_back(command.name);
  std::string hint = did_you_mean(word, names);
  if (hint.empty()) hint = "stowage --help lists the commands";
  return {command_line_error(fmt::format("there is no command '{}'", word), hint)};
}

bool contains(std::span<const std::string> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Where the libraries are looked for, and whether there is the GPU that is asked about.
std::optional<ExitCode> prepare(const Arguments& arguments, Format mistakes_format) {
  if (const auto used = use_named_libraries(arguments); !used) {
    return refuse(used.error(), mistakes_format);
  }
  if (arguments.text("gpu") != present_name) return std::nullopt;
  const auto present = present_gpu(probe_gpus());
  if (present) return std::nullopt;
  refuse({question_error("`gpu` here: " + present.error().front().message,
                         "`gpu` NAME takes a card that is elsewhere")},
         mistakes_format);
  return ExitCode::needs_gpu;
}

}  // namespace

ExitCode run_program(std::span<const std::string> words) {
  if (words.empty()) {
    write_quietly(stderr, program_help());
    return ExitCode::bad_input;
  }
  if (words[0] == "-h" || words[0] == "--help") return print(program_help(), ExitCode::yes);
  if (words[0] == "-V" || words[0] == "--version") {
    return print(fmt::format("stowage {}\n", program_version), ExitCode::yes);
  }

  const Format mistakes_format = format_for_mistakes(words);
  const CommandSpec* command = find_command(words[0]);
  if (command == nullptr) return refuse(unknown_command(words), mistakes_format);
  words = words.subspan(1);
  if (contains(words, "--help")) {
    return print(long_help(*command, contains(words, "--all")), ExitCode::yes);
  }
  if (contains(words, "-h")) return print(short_help(*command), ExitCode::yes);

  const Result<Arguments> arguments = parse_arguments(*command, words);
  if (!arguments) return refuse(arguments.error(), mistakes_format);
  if (const auto refused = prepare(*arguments, mistakes_format)) return *refused;
  const bool is_quiet = arguments->given("quiet");
  if (is_quiet) Progress::silence();
  Result<RenderedAnswer> answer = command->run(*arguments);
  if (!answer) return refuse(answer.error(), mistakes_format);
  if (is_quiet) return answer->exit_code;
  Report& report = answer->report;
  complain(report.notes);
  const Format format = format_of(arguments->text("format").value_or("table"));
  if (!report.json.empty())
    report.json.emplace_back("notes", diagnostics_array(in_options(report.notes)));
  return print(render(report, format, screen()), answer->exit_code);
}

}  // namespace stowage
