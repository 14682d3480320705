#include <algorithm>

#include "cli/option.hpp"
#include "estimator/base/precision.hpp"

namespace stowage {

namespace {

constexpr double most = 1e9;

const std::vector<OptionSpec>& table() {
  using enum OptionType;
  using enum OptionGroup;
  static const std::vector<OptionSpec> options{
      {.name = "batch",
       .type = integer,
       .group = model,
       .value = "N",
       .help = "samples a step",
       .default_value = "1",
       .unit = "samples",
       .minimum = 1,
       .maximum = most},
      {.name = "global-batch",
       .type = integer,
       .group = model,
       .value = "N",
       .help = "samples an update, to be reached by accumulating gradients",
       .default_note = "no accumulation",
       .unit = "samples",
       .minimum = 1,
       .maximum = most},
      {.name = "seq",
       .type = integer,
       .group = model,
       .value = "N",
       .help = "sequence length, for models that have the symbol 'seq'",
       .default_note = "the description's",
       .unit = "tokens",
       .minimum = 1,
       .maximum = most},
      {.name = "set",
       .type = assignment,
       .group = model,
       .value = "NAME=VALUE",
       .help = "one of the model's own arguments; may be given several times"},
      {.name = "configs",
       .type = text,
       .group = model,
       .value = "DIR",
       .help = "the folder with models/, gpus/ and hosts/",
       .default_note = "STOWAGE_CONFIGS, else the one that came with the program"},
      {.name = "mode",
       .type = choice,
       .group = training,
       .value = "MODE",
       .help = "a training step or an inference",
       .default_note = "train where the model has a loss",
       .choices = {"train", "inference"}},
      {.name = "optimizer",
       .type = choice,
       .group = training,
       .value = "NAME",
       .help = "the optimizer, with its usual settings",
       .default_note = "the description's",
       .choices = {"sgd", "momentum", "adam", "adamw"}},
      {.name = "precision",
       .type = choice,
       .group = training,
       .value = "NAME",
       .help = "number formats: of everything, amp- (autocast), mixed- (fp32 master weights)",
       .default_note = "the description's, else fp32",
       .choices = {precision_names().begin(), precision_names().end()}},
      {.name = "eval-batch",
       .type = integer,
       .group = training,
       .value = "N",
       .help = "also an evaluation of N samples between two training steps, in one process",
       .default_note = "no evaluation",
       .unit = "samples",
       .minimum = 1,
       .maximum = most},
      {.name = "rule-of-thumb",
       .type = flag,
       .group = output,
       .help = "print beside it what the rule of thumb gives that people work out by hand"},
      {.name = "gpu",
       .type = text,
       .group = device,
       .value = "NAME",
       .help = "a card by name, however it is written (stowage gpus lists them)"},
      {.name = "gpu-memory",
       .type = size,
       .group = device,
       .value = "SIZE",
       .help = "the card's CUDA total; alone: a generic card of that size",
       .unit = "bytes"},
      {.name = "compute-capability",
       .type = number,
       .group = device,
       .value = "X.Y",
       .help = "of the generic card of a bare --gpu-memory",
       .default_note = "8.6",
       .minimum = 3.0,
       .maximum = 20.0},
      {.name = "in-use",
       .type = size,
       .group = device,
       .value = "SIZE",
       .help = "what others hold of the card, as nvidia-smi shows it",
       .default_value = "0",
       .unit = "bytes"},
      {.name = "reserve",
       .type = size,
       .group = device,
       .value = "SIZE",
       .help = "what is to stay free",
       .default_value = "0",
       .unit = "bytes"},
      {.name = "context",
       .type = size,
       .group = device,
       .value = "SIZE",
       .help = "the CUDA context's bytes, where you have measured them",
       .default_note = "the card's",
       .unit = "bytes"},
      {.name = "runtime",
       .type = choice,
       .group = device,
       .value = "NAME",
       .help = "whose allocator: tensors alone, our arena, PyTorch's",
       .default_note = "pytorch; of a plan: stowage",
       .choices = {"ideal", "stowage", "pytorch"},
       .later = {"tensorflow"}},
      {.name = "host",
       .type = text,
       .group = planning,
       .value = "FILE",
       .help = "a description of the CPU's side",
       .default_note = "this machine"},
      {.name = "budget",
       .type = size,
       .group = planning,
       .value = "SIZE",
       .help = "GPU memory for the plan's arena",
       .default_note = "what the card leaves",
       .unit = "bytes"},
      {.name = "choose",
       .type = text,
       .group = planning,
       .value = "NAME",
       .help = "which proposal to write",
       .default_note = "the fastest that changes nothing"},
      {.name = "output",
       .type = text,
       .group = planning,
       .value = "FILE",
       .help = "where the result is written",
       .default_note = "nowhere",
       .short_name = 'o'},
      {.name = "time-limit",
       .type = number,
       .group = planning,
       .value = "SECONDS",
       .help = "for the search; the best so far is taken with its gap",
       .default_value = "10",
       .unit = "seconds",
       .minimum = 0.01,
       .maximum = 86400},
      {.name = "validate",
       .type = flag,
       .group = planning,
       .help = "also run the chosen plan on the host, as stowage validate does"},
      {.name = "model-only",
       .type = flag,
       .group = validation,
       .help = "the checks on paper alone; run nothing"},
      {.name = "on",
       .type = choice,
       .group = validation,
       .value = "WHERE",
       .help = "where to run the plan",
       .default_value = "host",
       .choices = {"host", "cuda"}},
      {.name = "to",
       .type = choice,
       .group = output,
       .value = "FORM",
       .help = "what to write",
       .default_value = "dot",
       .choices = {"dot"},
       .later = {"device-map", "deepspeed", "tensorflow", "trace", "memory-snapshot", "html"}},
      {.name = "format",
       .type = choice,
       .group = output,
       .value = "FORMAT",
       .help = "how the result is printed",
       .default_value = "table",
       .choices = {"table", "json", "csv", "markdown"}},
      {.name = "verbose",
       .type = flag,
       .group = output,
       .help = "list every row: nothing is folded into 'others'",
       .short_name = 'v'},
  };
  return options;
}

}  // namespace

std::string_view to_string(OptionGroup group) {
  switch (group) {
    case OptionGroup::model:
      return "The model";
    case OptionGroup::training:
      return "The step";
    case OptionGroup::device:
      return "The card and the runtime";
    case OptionGroup::planning:
      return "The plan";
    case OptionGroup::validation:
      return "Validation";
    case OptionGroup::output:
      return "Output";
  }
  return "";
}

std::span<const OptionSpec> option_table() { return table(); }

const OptionSpec* find_option(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(),
                                  [&](const OptionSpec& option) { return option.name == name; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace stowage
