#include <algorithm>

#include "cli/commands.hpp"

namespace stowage {

namespace {

constexpr PositionalSpec model_positional{
    .name = "MODEL", .help = "a description's file, '-' for stdin, or a name of stowage models"};

const std::vector<CommandSpec>& table() {
  static const std::vector<CommandSpec> commands{
      {.name = "summary",
       .summary = "layers, output shapes, parameters",
       .details = "Prints a model's layers in the order in which they run, with their output "
                  "shapes and parameters. A tied parameter counts where it is first used; "
                  "buffers, such as running statistics, are counted apart.",
       .positionals = {model_positional},
       .options = {"batch", "seq", "set", "format", "verbose", "configs"},
       .examples = {"stowage summary resnet50", "stowage summary gpt2 --seq 512 --format json"},
       .run = run_summary},
      {.name = "models",
       .summary = "the catalogue of models",
       .details = "Lists the models that came with the program; every command that takes a MODEL "
                  "takes these names.",
       .options = {"format", "configs"},
       .examples = {"stowage models"},
       .run = run_models},
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
