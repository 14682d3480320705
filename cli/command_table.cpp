#include <algorithm>

#include "cli/commands.hpp"

namespace stowage {

namespace {

const std::vector<CommandSpec>& table() {
  static const std::vector<CommandSpec> commands{
      {.name = "gpus",
       .summary = "the catalogue of cards",
       .details = "Lists the cards that --gpu knows: what nvidia-smi prints as their memory, what "
                  "CUDA can hand out of it, and their rates.",
       .options = {"format", "configs"},
       .examples = {"stowage gpus", "stowage gpus --format csv"},
       .run = run_gpus},
      {.name = "ops",
       .summary = "the catalogue of operators",
       .details = "Lists the operators of the description language, or explains one of them with "
                  "its attributes.",
       .positionals = {{.name = "OPERATOR", .help = "one of them", .required = false}},
       .options = {"format"},
       .examples = {"stowage ops conv2d", "stowage ops"},
       .run = run_ops},
      {.name = "help",
       .summary = "what a command does",
       .details = "Explains a command as its --help does. With --format markdown and no command, "
                  "prints the reference of all of them.",
       .positionals = {{.name = "COMMAND", .help = "one of the commands", .required = false}},
       .options = {"format"},
       .examples = {"stowage help check"},
       .run = run_help},
  };
  return commands;
}

}  // namespace

std::span<const CommandSpec> command_table() { return table(); }

const CommandSpec* find_command(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(),
                                  [&](const CommandSpec& command) { return command.name == name; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace stowage
