// Help, made from the command and option tables.
#pragma once

#include <string>

#include "cli/options/command.hpp"

namespace stowage {

[[nodiscard]] std::string program_help();
/// -h: at most 24 lines of 80 columns, with a real example.
[[nodiscard]] std::string short_help(const CommandSpec& command);
/// --help: the usual options, or, with --all or where there are not many more, all of them,
/// grouped; with defaults and choices; 80 columns.
[[nodiscard]] std::string long_help(const CommandSpec& command, bool all);
/// docs/commands.md. A test holds the file to it.
[[nodiscard]] std::string command_reference();

}  // namespace stowage
