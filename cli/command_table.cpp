#include <algorithm>

#include "cli/commands.hpp"

namespace stowage {

namespace {

constexpr PositionalSpec model_positional{
    .name = "MODEL", .help = "a description's file, '-' for stdin, or a name of stowage models"};

const std::vector<CommandSpec>& table() {
  static const std::vector<CommandSpec> commands{
      {.name = "check",
       .summary = "does it fit? what takes the room?",
       .details = "Says whether a step of the model fits the card under the given runtime, what is "
                  "live at its peak by class and by tensor, and what the runtime adds to that. "
                  "Exit code 0: it fits, 1: it does not.",
       .positionals = {model_positional},
       .options = {"batch", "gpu", "gpu-memory", "in-use", "reserve", "mode", "optimizer", "seq",
                   "runtime", "format", "verbose", "precision", "context", "compute-capability",
                   "set", "configs"},
       .examples = {"stowage check vgg16 --gpu rtx3090 --batch 64",
                    "stowage check keras-deep-16x16 --gpu gtx960 --in-use 233MiB",
                    "stowage check net.yaml --gpu-memory 8GiB --mode inference --format json"},
       .run = run_check},
      {.name = "batch",
       .summary = "the largest batch that fits, and the one to use",
       .details = "Finds the largest batch that fits the card, the largest below which all fit, "
                  "and one to use: a multiple of 8 where there is one. With --global-batch also "
                  "the micro-batch and the steps of accumulation that reach it. Exit code 1: not "
                  "even one sample fits.",
       .positionals = {model_positional},
       .options = {"gpu", "gpu-memory", "global-batch", "in-use", "reserve", "mode", "optimizer",
                   "seq", "runtime", "format", "precision", "context", "compute-capability", "set",
                   "configs"},
       .examples = {"stowage batch resnet50 --gpu rtx3090",
                    "stowage batch resnet50 --gpu rtx3090 --reserve 1GiB --format json"},
       .run = run_batch},
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
