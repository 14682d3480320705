#include "answers/exporting/trainer_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "answers/question/question_error.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

struct NamedOptimizer {
  std::string_view row, name;
};
constexpr std::array named_optimizers{
    NamedOptimizer{"sgd", "sgd"},
    NamedOptimizer{"adagrad", "adagrad"},
    NamedOptimizer{"rmsprop", "rmsprop"},
    NamedOptimizer{"adafactor-transformers", "adafactor"},
    NamedOptimizer{"adamw8bit", "adamw_bnb_8bit"},
    NamedOptimizer{"paged_adamw_32bit", "paged_adamw_32bit"},
    NamedOptimizer{"paged_adamw_8bit", "paged_adamw_8bit"},
    NamedOptimizer{"paged_lion_32bit", "paged_lion_32bit"},
    NamedOptimizer{"paged_lion_8bit", "paged_lion_8bit"},
};

std::string optimizer_arguments(const OptimizerSettings& settings) {
  std::vector<std::string> arguments;
  if (settings.momentum > 0) arguments.push_back(fmt::format("momentum={}", settings.momentum));
  if (settings.nesterov) arguments.emplace_back("nesterov=true");
  if (settings.centered) arguments.emplace_back("centered=true");
  return fmt::format("{}", fmt::join(arguments, ","));
}

}  // namespace

std::optional<TrainerOptimizer> trainer_optimizer(const EngineStep& step) {
  const OptimizerSettings& settings = step.lowering.optimizer;
  const OptimizerImplementation implementation = implementation_of(settings);
  if (settings.amsgrad) return std::nullopt;
  if (settings.name == "adamw") {
    const bool is_fused = implementation == OptimizerImplementation::fused;
    return TrainerOptimizer{.name = is_fused ? "adamw_torch_fused" : "adamw_torch",
                            .says_variant = implementation != OptimizerImplementation::for_loop};
  }
  const auto found = std::ranges::find(named_optimizers, settings.name, &NamedOptimizer::row);
  if (found == named_optimizers.end()) return std::nullopt;
  return TrainerOptimizer{
      .name = std::string(found->name),
      .arguments = optimizer_arguments(settings),
      .says_variant = settings.implementation == OptimizerImplementation::usual};
}

Result<TrainerPrecision> trainer_precision(const EngineStep& step, std::string_view program) {
  using enum Precision;
  const Precision precision = step.precision;
  const bool zero = step.parallel().zero > 0, fsdp = step.parallel().fsdp.on;
  const auto refused = [&](std::string_view why, std::string hint) {
    return failure(question_error(fmt::format("`precision` {}: {}", to_string(precision), why),
                                  std::move(hint)));
  };
  if (precision == fp64)
    return refused(fmt::format("{} trains in fp32, fp16 and bf16", program), {});
  const bool is_bf16 = float_type(precision) == DataType::bfloat16 || precision == amp_bf16;
  if (autocast_type(precision)) {
    if (fsdp) {
      return refused("accelerate gives FSDP 16-bit parameters wherever it mixes precisions",
                     fmt::format("`precision` mixed-{} is that", is_bf16 ? "bf16" : "fp16"));
    }
    // DeepSpeed's own section torch_autocast says it.
    return TrainerPrecision{.bf16 = is_bf16 && !zero, .fp16 = !is_bf16 && !zero};
  }
  if (zero && precision != fp32) return TrainerPrecision{.bf16 = is_bf16, .fp16 = !is_bf16};
  if (has_master_weights(precision)) {
    if (fsdp) return TrainerPrecision{.bf16 = is_bf16, .fp16 = !is_bf16};
    return refused(
        fmt::format("{} keeps no float32 copies of 16-bit parameters on its own", program),
        fmt::format("`precision` amp-{} is its mixed precision; `zero` and `fsdp` keep "
                    "such copies",
                    is_bf16 ? "bf16" : "fp16"));
  }
  if (precision == fp32) return TrainerPrecision{};
  return TrainerPrecision{.load_type = float_type(precision)};
}

bool fsdp_checkpoints(const EngineStep& step) {
  return step.checkpoints_blocks && step.parallel().fsdp.by_block;
}

SettingsTree fsdp_tree(const EngineStep& step, const FsdpWords& words) {
  const FullyShard& fsdp = step.parallel().fsdp;
  const auto key = [&](std::string_view name) { return fmt::format("{}{}", words.prefix, name); };
  SettingsTree tree;
  if (!words.version.empty()) tree.add(std::string(words.version), 2);
  tree.add(key("auto_wrap_policy"), fsdp.by_block ? "TRANSFORMER_BASED_WRAP" : "NO_WRAP");
  tree.add(key("reshard_after_forward"), fsdp.reshards_after_forward);
  tree.add(std::string(words.offload), step.parallel().offload != Offload::none);
  tree.add(key("activation_checkpointing"), fsdp_checkpoints(step));
  return tree;
}

bool add_checkpoints_of_trainer(const EngineStep& step, SettingsTree& tree) {
  const bool by_fsdp = step.parallel().fsdp.on && fsdp_checkpoints(step);
  const bool on = step.checkpoints_blocks && !by_fsdp;
  tree.add("gradient_checkpointing", on);
  if (on) {
    SettingsTree arguments;
    arguments.add("use_reentrant", false);
    tree.add("gradient_checkpointing_kwargs", std::move(arguments));
  }
  return on || by_fsdp;
}

std::vector<std::string> fsdp_remarks(const EngineStep& step) {
  const FullyShard& fsdp = step.parallel().fsdp;
  std::vector<std::string> lines;
  const auto add_if = [&](bool holds, std::string line) {
    if (holds) lines.push_back(std::move(line));
  };
  add_if(fsdp.reshards_among > 0,
         fmt::format("`fsdp` reshard={}: accelerate reshards among all GPUs or not at all",
                     fsdp.reshards_among));
  add_if(fsdp.output_type.has_value(), "`fsdp` output=: accelerate chooses the result's format");
  add_if(fsdp.forward_prefetch > 0, "`fsdp` forward-prefetch=: accelerate has no setting for it");
  add_if(fsdp.backward_prefetch > 0, "`fsdp` backward-prefetch=: accelerate has no setting for it");
  if (fsdp.reduce_type) {
    const bool mixes = has_master_weights(step.precision);
    const DataType reduces = mixes ? float_type(step.precision) : DataType::float32;
    add_if(*fsdp.reduce_type != reduces,
           fmt::format("`fsdp` reduce={}: accelerate reduces in {}", to_string(*fsdp.reduce_type),
                       mixes ? to_string(reduces) : "the parameters' format"));
  }
  add_if(!step.parallel().pinned, "`offload` pin=false: accelerate pins what it offloads");
  add_if(
      fsdp.by_block,
      "the blocks are those that the model of transformers names (_no_split_modules); of another "
      "model the script names their class, transformer_layer_cls_to_wrap");
  return lines;
}

std::vector<std::string> fsdp_uncounted(const EngineStep& step) {
  std::vector<std::string> lines{
      "the groups of their own that accelerate makes of the embeddings, and of the last norm with "
      "the head: counted is one group of both"};
  if (has_master_weights(step.precision)) {
    lines.emplace_back(
        "autocast, which accelerate runs around an FSDP model in mixed precision: norms and losses "
        "in float32, results converted to float32");
  }
  return lines;
}

std::vector<std::string> offload_remarks(const OffloadSettings& asked, std::string_view program) {
  const OffloadSettings usual;
  std::vector<std::string> lines;
  const auto add_if = [&](bool holds, const std::string& what) {
    if (!holds) return;
    lines.push_back(fmt::format("`offload_activations` {}: {} has no key for it", what, program));
  };
  add_if(asked.least_bytes != usual.least_bytes, fmt::format("min_bytes={}", asked.least_bytes));
  add_if(asked.stash != usual.stash, fmt::format("stash={}", asked.stash));
  add_if(asked.streams != usual.streams, fmt::format("streams={}", asked.streams));
  return lines;
}

std::vector<std::string> lora_remarks(const LoraSettings& lora, std::string_view program) {
  std::vector<std::string> lines;
  const auto add_if = [&](bool holds, std::string_view what) {
    if (holds) lines.push_back(fmt::format("`lora` {}: {} has no key for it", what, program));
  };
  if (lora.alpha != static_cast<double>(static_cast<std::int64_t>(lora.alpha))) {
    lines.push_back(fmt::format("`lora` alpha={}: {} takes whole numbers; it changes no memory",
                                lora.alpha, program));
  }
  add_if(!lora.ranks.empty(), "rank_pattern=");
  add_if(!lora.alphas.empty(), "alpha_pattern=");
  add_if(lora.type.has_value(), "dtype=");
  add_if(lora.bias != LoraBias::none, "bias=");
  return lines;
}

}  // namespace stowage
