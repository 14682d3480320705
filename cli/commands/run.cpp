#include "cli/commands/run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "cli/options/arguments.hpp"
#include "cli/options/help.hpp"
#include "cli/options/option.hpp"
#include "cli/options/request.hpp"
#include "cli/options/setting_names.hpp"
#include "cli/output/diagnostics_json.hpp"
#include "cli/output/terminal.hpp"
#include "cli/output/version.hpp"
#include "gpu_probe/device/present_card.hpp"
#include "gpu_probe/driver/library_places.hpp"

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
          .colour = wants_colour && is_terminal(STDOUT_FILENO),
          .width = terminal_width(STDOUT_FILENO)};
}

Diagnostics unknown_command(const std::string& word) {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) names.push_back(command.name);
  std::string hint = did_you_mean(word, names);
  if (hint.empty()) hint = "stowage --help lists the commands";
  return {command_line_error(fmt::format("there is no command '{}'", word), hint)};
}

bool contains(std::span<const std::string> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// In which form a mistake is told, even one that keeps the words from being parsed.
Format wanted_format(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool next = words[i] == "--format" && i + 1 < words.size() && words[i + 1] == "json";
    if (next || words[i] == "--format=json") return Format::json;
  }
  return Format::table;
}

/// What holds for the whole run: where libraries are looked for, and whether there is the GPU that
/// is asked about.
std::optional<ExitCode> prepare(const Arguments& arguments, Format mistakes_format) {
  if (const auto folder = arguments.text("cudnn")) {
    if (!has_cudnn(*folder)) {
      return refuse(
          {command_line_error(
              fmt::format("--cudnn: there is no {} in '{}'", cudnn_file, *folder),
              "cuDNN's root, its lib/ or the Python environment that it is installed in")},
          mistakes_format);
    }
    use_cudnn_in(*folder);
  }
  if (const auto folder = arguments.text("cuda-libraries")) {
    if (!has_nvidia_libraries(*folder)) {
      return refuse(
          {command_line_error(
              fmt::format("--cuda-libraries: neither cuDNN nor cuBLAS nor NVRTC is in '{}'",
                          *folder),
              "a toolkit's root, its lib64/ or a Python environment with PyTorch")},
          mistakes_format);
    }
    use_nvidia_libraries_in(*folder);
  }
  if (arguments.text("gpu") == present_name) {
    if (const auto present = present_gpu(probe_gpus()); !present) {
      refuse({command_line_error("--gpu here: " + present.error().front().message,
                                 "--gpu NAME takes a card that is elsewhere")},
             mistakes_format);
      return ExitCode::needs_gpu;
    }
  }
  return std::nullopt;
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

  const Format mistakes_format = wanted_format(words);
  const CommandSpec* command = find_command(words[0]);
  if (command == nullptr) return refuse(unknown_command(words[0]), mistakes_format);
  words = words.subspan(1);
  if (contains(words, "--help")) return print(long_help(*command), ExitCode::yes);
  if (contains(words, "-h")) return print(short_help(*command), ExitCode::yes);

  const Result<Arguments> arguments = parse_arguments(*command, words);
  if (!arguments) return refuse(arguments.error(), mistakes_format);
  if (const auto refused = prepare(*arguments, mistakes_format)) return *refused;
  Result<RenderedAnswer> answer = command->run(*arguments);
  if (!answer) return refuse(answer.error(), mistakes_format);
  Report& report = answer->report;
  complain(report.notes);
  const Format format = format_of(arguments->text("format").value_or("table"));
  if (!report.json.empty())
    report.json.emplace_back("notes", diagnostics_array(in_options(report.notes)));
  return print(render(report, format, screen()), answer->exit_code);
}

}  // namespace stowage
