#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/options/read_request.hpp"

namespace stowage {

namespace {

constexpr PositionalSpec model_positional{
    .name = "MODEL", .help = "a model's file or folder, hf:NAME, '-' for stdin, or a shipped name"};
constexpr PositionalSpec model_or_step_positional{
    .name = "MODEL", .help = "a model's or step's file, a folder, hf:NAME, '-', or a shipped name"};

constexpr PositionalSpec compared_positional{
    .name = "MODEL",
    .help = "a model's or step's file, a folder, hf:NAME, '-', or a shipped name",
    .repeats = true};

using OptionNames = std::vector<std::string_view>;

/// The command line's values become the command's request here, and go no further.
template <auto read, auto run>
Result<RenderedAnswer> answered(const Arguments& arguments) {
  const auto request = read(arguments);
  if (!request) return tl::unexpected(request.error());
  return run(*request);
}

OptionNames joined(std::initializer_list<OptionNames> parts) {
  OptionNames names;
  for (const OptionNames& part : parts) names.insert(names.end(), part.begin(), part.end());
  return names;
}

/// A language model that serves, with its cache.
const OptionNames serving_option_names{"context-length", "users",    "kv-dtype",
                                       "cache",          "kv-block", "prefill-chunk"};

/// What check and batch take: the card, the step, the runtime with its allocator, the software.
const OptionNames sizing_options =
    joined({{"gpu", "gpu-memory", "in-use", "reserve", "mode", "optimizer",
             "optimizer-implementation", "precision", "lora", "base", "checkpoint", "layer-dtype",
             "chunked-loss", "offload-activations", "optimizer-in-backward", "packing",
             "master-gradients", "accumulation", "seq"},
            serving_option_names,
            {"gpus",
             "zero",
             "fsdp",
             "offload",
             "runtime",
             "alloc-conf",
             "memory-limit",
             "memory-growth",
             "memory-fraction",
             "virtual-gpus",
             "theano-flags",
             "layout",
             "cudnn-benchmark",
             "tf32",
             "deterministic",
             "context",
             "cuda-version",
             "pytorch-version",
             "module-loading",
             "calibration",
             "compute-capability",
             "format",
             "cudnn",
             "no-cache",
             "set",
             "loss",
             "allow-unknown",
             "configs"}});

const std::vector<CommandSpec>& all_commands() {
  static const std::vector<CommandSpec> commands{
      {.name = "check",
       .summary = "does it fit? what takes the room?",
       .details = "Says whether a step of the model fits the card under the given runtime, what is "
                  "live at its peak by class and by tensor, and what the runtime adds to that. "
                  "Exit code 0: it fits, 1: it does not. Several cards (--gpu a,b or all) or "
                  "models make one table: what fits where, and how large a batch; exit code 0: "
                  "every model fits at least one of the cards, 1: one fits none, 2: one "
                  "could not be read (the others are answered all the same).",
       .positionals = {compared_positional},
       .options = joined({{"batch", "eval-batch", "rule-of-thumb", "report", "verbose", "quiet"},
                          sizing_options}),
       .examples =
           {"stowage check vgg16 --gpu rtx3090 --batch 64",
            "stowage check resnet50 gpt2 --gpu rtx3090,a100-40gb --batch 8",
            "stowage check keras-deep-16x16 --gpu gtx-960-2gb --in-use 233MiB",
            "stowage check llama-3-8b --gpu rtx4090 --lora targets=q_proj",
            "stowage check net.yaml --gpu-memory 8GiB --mode inference --format json",
            "stowage check mnist-cnn --gpu gtx-960-2gb --runtime tensorflow --memory-growth"},
       .run = answered<read_check_request, run_check>},
      {.name = "batch",
       .summary = "the largest batch that fits, and the one to use",
       .details = "Finds the largest batch that fits the card, the largest below which all fit, "
                  "and one to use: it leaves --margin free and never makes PyTorch give its cache "
                  "back; a multiple of 8, 4 or 2 where that costs little. With --global-batch also "
                  "the micro-batch and the steps of accumulation that reach it. Exit code 1: not "
                  "even one sample fits. Several cards or models: one table, as of check.",
       .positionals = {compared_positional},
       .options = joined(
           {{"global-batch", "of", "at-batch", "margin", "report", "quiet"}, sizing_options}),
       .examples = {"stowage batch resnet50 --gpu rtx3090", "stowage batch gpt2-medium --gpu all",
                    "stowage batch resnet50 --gpu rtx3090 --reserve 1GiB --format json"},
       .run = answered<read_batch_request, run_batch>},
      {.name = "lower",
       .summary = "the step as a document that stands by itself",
       .details =
           "Writes the step of the model under a runtime as a step file: its kernels and "
           "storages with sizes for any batch, its settings, its layers and, where it "
           "trains, the evaluation beside it. check, batch, summary and plan take the file in "
           "place of the model and answer the same; docs/step-file.md has the format. "
           "--batch is remembered as the one to size it at where no other is given.",
       .positionals = {model_positional},
       .options = {"runtime",
                   "gpu",
                   "output",
                   "batch",
                   "gpu-memory",
                   "mode",
                   "optimizer",
                   "optimizer-implementation",
                   "precision",
                   "lora",
                   "base",
                   "checkpoint",
                   "layer-dtype",
                   "chunked-loss",
                   "offload-activations",
                   "optimizer-in-backward",
                   "packing",
                   "master-gradients",
                   "accumulation",
                   "seq",
                   "gpus",
                   "zero",
                   "fsdp",
                   "offload",
                   "layout",
                   "cudnn-benchmark",
                   "tf32",
                   "deterministic",
                   "compute-capability",
                   "set",
                   "loss",
                   "allow-unknown",
                   "configs"},
       .examples = {"stowage lower gpt2 --gpu rtx3090 --batch 8 -o gpt2.json",
                    "stowage lower net.yaml --runtime stowage --optimizer adam -o net.json"},
       .run = answered<read_lower_request, run_lower>},
      {.name = "plan",
       .summary = "where everything goes, so that it fits",
       .details =
           "Makes plans of the step within the card's memory or the budget: what stays on "
           "the GPU, what crosses to the host and back, when, and at which addresses. Each "
           "is shown with the proven bound on what any plan could reach, and has passed the "
           "validator. With -o the chosen one is written. Exit code 1: no plan keeps within "
           "the budget, or the host cannot hold it; the operation that breaks it is named, and "
           "the least memory that would do.",
       .positionals = {model_or_step_positional},
       .options = joined({{"batch",
                           "gpu",
                           "budget",
                           "output",
                           "choose",
                           "for",
                           "placement",
                           "minimize",
                           "frontier",
                           "report",
                           "pin",
                           "no-soft-placement",
                           "log-placement",
                           "verbose",
                           "quiet",
                           "validate",
                           "gpu-memory",
                           "in-use",
                           "reserve",
                           "mode",
                           "optimizer",
                           "host",
                           "host-memory",
                           "format",
                           "seq"},
                          serving_option_names,
                          {"effort",
                           "time-limit",
                           "runtime",
                           "alloc-conf",
                           "precision",
                           "lora",
                           "base",
                           "checkpoint",
                           "layer-dtype",
                           "chunked-loss",
                           "offload-activations",
                           "optimizer-in-backward",
                           "packing",
                           "master-gradients",
                           "context",
                           "cuda-version",
                           "pytorch-version",
                           "module-loading",
                           "calibration",
                           "compute-capability",
                           "layout",
                           "cudnn-benchmark",
                           "tf32",
                           "deterministic",
                           "cudnn",
                           "no-cache",
                           "set",
                           "loss",
                           "allow-unknown",
                           "configs"}}),
       .examples = {"stowage plan vgg16 --gpu rtx3060 --batch 256 -o vgg.yaml",
                    "stowage plan resnet50 --gpu rtx3060 --batch 256 --for pytorch",
                    "stowage plan mnist-cnn --batch 64 --budget 8MiB -o m.yaml --validate",
                    "stowage plan hf:Qwen/Qwen2.5-7B --context-length 8192 --gpu rtx3060"},
       .run = answered<read_planning_request, run_planning>},
      {.name = "validate",
       .summary = "re-check a plan, then run it",
       .details =
           "Reads a plan and recounts everything by the definition, from the step that it "
           "holds; then runs it, on the CPU in an arena of the planned size or on a GPU, and "
           "compares bytes and numbers with the same step with everything resident. Of several "
           "plans all are read before the first is run. Of a plan for PyTorch the step is made "
           "anew "
           "from what it was made of, and the plan is only checked on paper: PyTorch runs it. "
           "Exit code 1: a check of any failed, 3: "
           "--on cuda where there is no GPU to run on. With --write-calibration what the run took "
           "is written down, and plan --calibration plans with it.",
       .positionals = {{.name = "PLAN",
                        .help = "a plan's file, or '-' for stdin",
                        .repeats = true}},
       .options = {"model-only", "source", "step", "on", "steps", "write-calibration", "quiet",
                   "format", "cudnn", "cuda-libraries", "no-cache", "configs"},
       .examples = {"stowage validate m.yaml --on host --steps 3",
                    "stowage validate m.yaml --steps 5 --write-calibration here.yaml",
                    "stowage validate m.yaml --model-only"},
       .run = answered<read_validate_request, run_validate>},
      {.name = "explain",
       .summary = "why something is where a plan has it",
       .details =
           "Says of an operator, a variable, a layer or a whole scope where a plan has it and why: "
           "pinned by whom, no GPU kernel, the budget, or cheaper by how much; and what the "
           "alternatives would cost, in seconds and in bytes over PCIe, with all else as planned. "
           "A plan's file is enough.",
       .positionals = {{.name = "PLAN", .help = "a plan's file, or '-' for stdin"},
                       {.name = "NAME",
                        .help = "a layer's path, a scope ('encoder.*'), a kernel or a storage"}},
       .options = {"format"},
       .examples = {"stowage explain vgg.yaml stage3.unit.1.conv",
                    "stowage explain vgg.yaml update.fc1.weight --format json"},
       .run = answered<read_explain_request, run_explain>},
      {.name = "diff",
       .summary = "what a change adds, or what moved between two plans",
       .details =
           "With a card: two checks, of two models or of one with and without --change; what the "
           "second takes more, by class and by layer, at the peak of each. Options are of both, as "
           "of check. Exit code 0: the second fits, 1: it does not. Without: two plans; their "
           "totals, the operators that run elsewhere or with another engine, and the storages that "
           "are elsewhere or copied otherwise, with the bytes each way. Plans of different steps "
           "are compared by name, with a note; exit code 0.",
       .positionals = {{.name = "BEFORE", .help = "a model, as of check, or a plan's file"},
                       {.name = "AFTER",
                        .help = "the same; of models BEFORE where it is left out",
                        .required = false}},
       .options = joined({{"change", "batch", "verbose", "quiet"}, sizing_options}),
       .examples = {"stowage diff resnet50 resnet101 --gpu t4 --batch 32",
                    "stowage diff gpt2 --gpu rtx3090 --batch 8 --change precision=amp-bf16",
                    "stowage diff a.yaml b.yaml --format csv"},
       .run = answered<read_diff_request, run_diff>},
      {.name = "export",
       .summary = "a plan or a model in another form",
       .details =
           "Writes a plan or a model for other programs: as a drawing (dot), as JSON, or as the "
           "configuration of what trains or serves it. Of a model the options of check say the "
           "step; the configuration is sized by the same count, what the file cannot say and what "
           "is not counted is listed beside it. docs/engines.md has the forms. Exit code 1: what "
           "was written does not fit the card.",
       .positionals = {{.name = "PLAN", .help = "a plan's file, or a MODEL"}},
       .options = joined({{"to", "output", "batch"}, sizing_options}),
       .examples = {"stowage export m.yaml --to dot -o m.dot",
                    "stowage export gpt2 --to deepspeed --gpu rtx3060 --gpus 4 --zero 2",
                    "stowage export resnet18 --to dot"},
       .run = answered<read_export_request, run_export>},
      {.name = "summary",
       .summary = "layers, output shapes, parameters",
       .details = "Prints a model's layers in the order in which they run, with their output "
                  "shapes and parameters. A tied parameter counts where it is first used; "
                  "buffers, such as running statistics, are counted apart. With --verbose also "
                  "what each layer computes and what it is the first to keep for the backward "
                  "pass in PyTorch, for one sample where no --batch is given.",
       .positionals = {model_or_step_positional},
       .options = {"batch", "seq", "lora", "base", "layer-dtype", "layout", "set", "loss",
                   "allow-unknown", "format", "verbose", "configs"},
       .examples = {"stowage summary resnet50", "stowage summary gpt2 --seq 512 --format json"},
       .run = answered<read_summary_request, run_summary>},
      {.name = "probe",
       .summary = "this machine's GPUs",
       .details =
           "Lists the GPUs with what the driver says of them, the programs that use them, the "
           "instances of those that are divided (MIG), which of them CUDA shows "
           "(CUDA_VISIBLE_DEVICES), the driver, cuDNN, cuBLAS and NVRTC, and the host with its "
           "limits. Creates no CUDA context and changes no setting. That there is no GPU is "
           "an answer too, with the reason and exit code 0. With --calibrate measures one of "
           "them, context, libraries, link and kernel rates, cuDNN's text of the device, and "
           "the rates of the host's kernels; where there is no GPU these alone. With --device "
           "a GPU is wanted: exit code 3 where there is none.",
       .options = {"calibrate", "device", "output", "format", "configs"},
       .examples = {"stowage probe", "stowage probe --format json",
                    "stowage probe --calibrate -o here.yaml"},
       .run = answered<read_probe_request, run_probe>},
      {.name = "models",
       .summary = "the catalogue of models",
       .details = "Lists the models that came with the program; every command that takes a MODEL "
                  "takes these names. With a PART, those that have it in their name.",
       .positionals = {{.name = "PART", .help = "of the names that are wanted", .required = false}},
       .options = {"format", "configs"},
       .examples = {"stowage models", "stowage models resnet"},
       .run = answered<read_catalogue_request, run_models>},
      {.name = "gpus",
       .summary = "the catalogue of cards",
       .details = "Lists the cards that --gpu knows: what nvidia-smi prints as their memory, what "
                  "CUDA can hand out of it, and their rates. With a PART, those that have it in "
                  "their name.",
       .positionals = {{.name = "PART", .help = "of the names that are wanted", .required = false}},
       .options = {"format", "configs"},
       .examples = {"stowage gpus", "stowage gpus rtx", "stowage gpus --format csv"},
       .run = answered<read_catalogue_request, run_gpus>},
      {.name = "ops",
       .summary = "the catalogue of operators",
       .details = "Lists the operators of the description language, or explains one of them with "
                  "its attributes.",
       .positionals = {{.name = "OPERATOR", .help = "one of them", .required = false}},
       .options = {"format"},
       .examples = {"stowage ops conv2d", "stowage ops"},
       .run = answered<read_topic_request, run_ops>},
      {.name = "completion",
       .summary = "for a shell, or the manual page",
       .details = "Prints a script that completes commands, options, their words, cards, models "
                  "and files: source <(stowage completion bash) in ~/.bashrc, a file _stowage in a "
                  "folder of zsh's $fpath, ~/.config/fish/completions/stowage.fish. With man: the "
                  "manual page, as in stowage completion man | man -l -; with gpus and models: "
                  "names, a line each, as the scripts ask for them.",
       .positionals = {{.name = "SHELL", .help = "bash, zsh, fish, man, gpus or models"}},
       .options = {"configs"},
       .examples = {"stowage completion bash"},
       .run = answered<read_catalogue_request, run_completion>},
      {.name = "help",
       .summary = "what a command does",
       .details =
           "Explains a command as its --help does: with its usual options, or, with --all, with "
           "all of them. With --format markdown and no command, "
           "prints the reference of all of them; 'help kernels' prints the table of kernels that "
           "a step may call.",
       .positionals = {{.name = "COMMAND",
                        .help = "one of the commands, or kernels",
                        .required = false}},
       .options = {"all", "format"},
       .examples = {"stowage help check", "stowage help plan --all"},
       .run = answered<read_topic_request, run_help>},
  };
  return commands;
}

}  // namespace

std::span<const CommandSpec> command_table() { return all_commands(); }

const CommandSpec* find_command(std::string_view name) {
  const auto found = std::find_if(all_commands().begin(), all_commands().end(),
                                  [&](const CommandSpec& command) { return command.name == name; });
  return found == all_commands().end() ? nullptr : &*found;
}

}  // namespace stowage
