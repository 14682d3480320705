// CommandSpec: one sub-command: what it takes, how it is explained, and the function that runs it.
//
// The command line is parsed (arguments.hpp) and becomes a request (read_request.hpp); the command
// calls the library and renders (report.hpp), and holds no logic of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/rendered_answer.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

class Arguments;

struct PositionalSpec {
  std::string_view name;  ///< "MODEL"
  std::string_view help;
  bool required = true;
  bool repeats = false;  ///< of the last one: any number of them
};

struct CommandSpec {
  std::string_view name;
  std::string_view summary;  ///< one line, for the list of commands
  std::string_view details;  ///< a few sentences, for --help and docs/commands.md
  std::vector<PositionalSpec> positionals;
  std::vector<std::string_view> options;   ///< names in option_table(), the most wanted first
  std::vector<std::string_view> examples;  ///< whole command lines; the first is shown by -h
  /// Diagnostics instead of an answer mean exit code 2.
  Result<RenderedAnswer> (*run)(const Arguments& arguments) = nullptr;
};

[[nodiscard]] std::span<const CommandSpec> command_table();
[[nodiscard]] const CommandSpec* find_command(std::string_view name);  ///< null: unknown

}  // namespace stowage
