#include "cli/fine_tuning_options.hpp"

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
       .help = "the frozen linear layers' weights: nf4, fp4, int8 (bitsandbytes) or fp8 (torchao)",
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
                        .layer_dtype = arguments.text("layer-dtype")};
  FineTuning unused;
  const auto read = read_fine_tuning(texts, unused);
  if (read) return texts;
  Diagnostics mistakes;
  for (const Diagnostic& mistake : read.error()) {
    std::string message = "--" + mistake.message;
    if (message.starts_with("--layer_dtype")) message[7] = '-';
    mistakes.push_back(command_line_error(std::move(message), mistake.hint));
  }
  return tl::unexpected(std::move(mistakes));
}

}  // namespace stowage
