#include "cli/options/fine_tuning_options.hpp"

#include <algorithm>

namespace stowage {

const std::vector<OptionSpec>& fine_tuning_options() {
  using enum OptionType;
  using enum OptionGroup;
  static const std::vector<OptionSpec> options{
      {.name = "lora",
       .type = text,
       .group = training,
       .value = "SETTINGS",
       .help = "adapters beside frozen weights, as peft has them: "
               "r=16,alpha=32,targets=q_proj+v_proj",
       .default_note = "the description's, else none"},
      {.name = "base",
       .type = text,
       .group = training,
       .value = "FORMAT",
       .help = "the frozen linear layers' weights: nf4, fp4, int8 (bitsandbytes), fp8, int4 "
               "(torchao), gptq or awq; the last three in groups of 128",
       .default_note = "the precision's"},
      {.name = "checkpoint",
       .type = text,
       .group = training,
       .value = "WHICH",
       .help = "blocks that run again in backward: all, every=N, layers=PATTERN, "
               "selective=attention",
       .default_note = "the description's; alone: all",
       .alone = "all",
       .words = {"all", "every=", "layers=", "selective="}},
      {.name = "layer-dtype",
       .type = text,
       .group = training,
       .value = "PATTERN=TYPE",
       .help = "a format of their own for some layers' parameters: *norm*=fp32,lm_head=fp32",
       .default_note = "the description's, else the precision's"},
      {.name = "chunked-loss",
       .type = text,
       .group = training,
       .value = "N",
       .help = "output layer and cross entropy in N parts of the sequence, as torchtune has them; "
               "N,compiled: with torch.compile of the loss alone",
       .default_note = "the description's, else whole; alone: 8",
       .alone = "8",
       .words = {any_number, "chunks=", "compiled", "compiled="}},
      {.name = "offload-activations",
       .type = text,
       .group = training,
       .value = "SETTINGS",
       .help = "tensors saved for backward go to pinned host memory, as TRL's and torchtune's "
               "OffloadActivations have it: all, min_bytes=1024,stash=5,streams=false",
       .default_note = "none; alone: all",
       .alone = "all",
       .words = {"all", "min_bytes=", "stash=", "streams", "streams="}},
      {.name = "optimizer-in-backward",
       .type = flag,
       .group = training,
       .help =
           "an optimizer for each parameter steps when its gradient has come, and lets go of it"},
      {.name = "packing",
       .type = flag,
       .group = training,
       .help = "several sequences in each row: attention gets a mask of them (the description's "
               "argument 'packing')"}};
  return options;
}

Result<FineTuningTexts> read_fine_tuning_options(const Arguments& arguments) {
  FineTuningTexts texts{.lora = arguments.text("lora"),
                        .base = arguments.text("base"),
                        .checkpoint = arguments.text("checkpoint"),
                        .layer_dtype = arguments.text("layer-dtype"),
                        .chunked_loss = arguments.text("chunked-loss"),
                        .offload_activations = arguments.text("offload-activations")};
  if (arguments.flag("optimizer-in-backward")) texts.optimizer_in_backward = "true";
  FineTuning unused;
  const auto read = read_fine_tuning(texts, unused);
  if (read) return texts;
  Diagnostics mistakes;
  for (const Diagnostic& mistake : read.error()) {
    std::string message = "--" + mistake.message;
    const std::size_t end = message.find(':');
    std::replace(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
    mistakes.push_back(command_line_error(std::move(message), mistake.hint));
  }
  return tl::unexpected(std::move(mistakes));
}

}  // namespace stowage
