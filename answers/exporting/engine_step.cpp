#include "answers/exporting/engine_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/fsdp_text.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

namespace {

/// Where a PyTorch script says a setting that a program's file has no word for.
struct ScriptPlace {
  std::string_view field, where;
};

constexpr std::array script_places{
    ScriptPlace{"gpus", "torchrun or another launcher starts one process a GPU"},
    ScriptPlace{"zero", "DeepSpeed's own configuration says it"},
    ScriptPlace{"fsdp", "torch.distributed.fsdp.fully_shard"},
    ScriptPlace{"offload", "CPUOffloadPolicy of fully_shard, or DeepSpeed's own configuration"},
    ScriptPlace{"precision", "model.to(dtype) or torch.autocast"},
    ScriptPlace{"optimizer", "the optimizer that the script makes"},
    ScriptPlace{"optimizer_implementation", "foreach= and fused= of the optimizer"},
    ScriptPlace{"accumulation", "the loop calls backward as often before it steps"},
    ScriptPlace{"batch", "the data loader"},
    ScriptPlace{"seq", "the length of the data's samples"},
    ScriptPlace{
        "checkpoint",
        "torch.utils.checkpoint(use_reentrant=False), which transformers' models call after "
        "gradient_checkpointing_enable()"},
    ScriptPlace{"lora", "peft's LoraConfig"},
    ScriptPlace{"base", "the quantization_config that the model is loaded with"},
    ScriptPlace{"layer_dtype", "module.to(dtype) of these layers"},
    ScriptPlace{"chunked_loss", "torchtune's CEWithChunkedOutputLoss"},
    ScriptPlace{"offload_activations", "OffloadActivations of TRL or torchtune around forward"},
    ScriptPlace{"optimizer_in_backward", "a post-accumulate hook on each parameter"},
    ScriptPlace{"packing", "the data's collator"},
    ScriptPlace{"master_gradients", "gradients that the script adds up in float32"},
    ScriptPlace{"layout", "model.to(memory_format=torch.channels_last)"},
    ScriptPlace{"tf32", "torch.backends.cudnn.allow_tf32"},
    ScriptPlace{"deterministic", "torch.backends.cudnn.deterministic"},
    ScriptPlace{"cudnn_benchmark", "torch.backends.cudnn.benchmark"},
    ScriptPlace{"alloc_conf", "the environment variable PYTORCH_ALLOC_CONF"},
    ScriptPlace{"set", "the model's own configuration"},
};

std::string checkpoint_text(const CheckpointSettings& settings) {
  std::vector<std::string> parts;
  if (settings.every > 1) parts.push_back(fmt::format("every={}", settings.every));
  if (!settings.patterns.empty()) {
    parts.push_back(fmt::format("layers={}", fmt::join(settings.patterns, "+")));
  }
  if (settings.kept.attention || settings.kept.products) {
    parts.push_back(fmt::format("selective={}{}{}", settings.kept.attention ? "attention" : "",
                                settings.kept.attention && settings.kept.products ? "+" : "",
                                settings.kept.products ? "matmul" : ""));
  }
  return parts.empty() ? "all" : fmt::format("{}", fmt::join(parts, ","));
}

/// The settings in the order in which they are told.
class Statements {
 public:
  void add(std::string_view field, std::string value) {
    stated_.push_back({std::string(field), std::move(value)});
  }
  void add_if(bool holds, std::string_view field, std::string value = {}) {
    if (holds) add(field, std::move(value));
  }

  void of_process(const LoweringSettings& lowering, std::int64_t accumulation, std::int64_t batch) {
    const DataParallel& parallel = lowering.parallel;
    add("batch", std::to_string(batch));
    add_if(accumulation > 1, "accumulation", std::to_string(accumulation));
    add_if(parallel.gpus > 1, "gpus", std::to_string(parallel.gpus));
    add_if(parallel.zero > 0, "zero", std::to_string(parallel.zero));
    add_if(parallel.fsdp.on, "fsdp", fmt::format("({})", fsdp_text(parallel.fsdp)));
    add_if(parallel.offload != Offload::none, "offload",
           fmt::format("{}{}", to_string(parallel.offload), parallel.pinned ? "" : ",pin=false"));
  }

  void of_training(const LoweringSettings& lowering) {
    if (lowering.mode != Mode::train) return;
    const OptimizerSettings& optimizer = lowering.optimizer;
    add("optimizer", optimizer_text(optimizer));
    add_if(optimizer.implementation != OptimizerImplementation::usual, "optimizer_implementation",
           std::string(to_string(optimizer.implementation)));
    add_if(optimizer.master_weights == MasterWeights::weights_and_gradients, "master_gradients");
    const StepSettings& step = lowering.step;
    add_if(step.zero_grad == ZeroGrad::to_zero, "train: zero_grad", "to_zero");
    add_if(step.augment > 0, "train: augment", std::to_string(step.augment));
    add_if(step.prefetch > 0, "train: prefetch", std::to_string(step.prefetch));
  }

  void of_tuning(const FineTuning& tuning, const FineTuningTexts& texts, bool checkpoints) {
    add_if(tuning.lora.has_value(), "lora",
           texts.lora.value_or(tuning.lora ? fmt::format("r={}", tuning.lora->rank) : ""));
    add_if(tuning.base.has_value(), "base",
           texts.base.value_or(tuning.base ? to_string(*tuning.base) : ""));
    add_if(tuning.stored != nullptr && !tuning.base, "base", "as the checkpoint has it");
    add_if(checkpoints, "checkpoint",
           texts.checkpoint.value_or(tuning.checkpoint ? checkpoint_text(*tuning.checkpoint)
                                                       : "as described"));
    add_if(!tuning.layer_types.empty(), "layer_dtype", texts.layer_dtype.value_or("as described"));
    if (tuning.chunked_loss) {
      add("chunked_loss", fmt::format("{}{}", tuning.chunked_loss->chunks,
                                      tuning.chunked_loss->compiled ? ",compiled" : ""));
    }
    add_if(tuning.offload.has_value(), "offload_activations",
           texts.offload_activations.value_or("all"));
    add_if(tuning.optimizer_in_backward, "optimizer_in_backward");
  }

  void of_question(const StepQuestion& question, const LoweringSettings& lowering) {
    add_if(lowering.step.layout == TensorLayout::channels_last, "layout", "nhwc");
    const ConvolutionSettings& convolutions = question.wishes.convolutions;
    add_if(question.given.tf32, "tf32", convolutions.tf32 ? "on" : "off");
    add_if(convolutions.deterministic, "deterministic");
    add_if(convolutions.benchmark, "cudnn_benchmark");
    const auto& allocator = question.process.allocator;
    const bool only_expands = allocator == AllocatorSettings{.expandable_segments = true};
    add_if(allocator.has_value(), "alloc_conf",
           only_expands ? std::string(expandable_conf) : std::string());
    for (const auto& [name, value] : question.model.options.arguments) {
      if (name == "packing") {
        add("packing", "");
      } else {
        add("set", fmt::format("{}={}", name, value));
      }
    }
  }

  [[nodiscard]] std::vector<StatedSetting> taken() && { return std::move(stated_); }

 private:
  std::vector<StatedSetting> stated_;
};

std::int64_t count_regions(const ModelGraph& model) {
  std::set<int> regions;
  for (const Operator& op : model.operators) {
    if (op.region >= 0) regions.insert(op.region);
  }
  return static_cast<std::int64_t>(regions.size());
}

}  // namespace

bool EngineStep::states(std::string_view field) const {
  return std::ranges::find(stated, field, &StatedSetting::field) != stated.end();
}

EngineStep engine_step(const StepQuestion& question, const AskedStep& asked, std::int64_t batch) {
  const StepDocument& document = asked.document;
  EngineStep step{.model = document.graph->model,
                  .source = question.model.source,
                  .batch = batch,
                  .accumulation = document.accumulation,
                  .seq = document.seq,
                  .precision = document.precision,
                  .lowering = document.graph->settings,
                  .from_step_file = asked.model == nullptr};
  if (asked.model) {
    const ModelGraph& model = asked.model->graph;
    step.fine_tuning = model.fine_tuning;
    step.blocks = count_regions(model);
    const auto& chosen = step.fine_tuning.checkpoint;
    const bool plain = chosen && chosen->every == 1 && chosen->patterns.empty() &&
                       !chosen->kept.attention && !chosen->kept.products;
    step.checkpoints_blocks = step.blocks > 0 && plain;
    step.checkpoints_other = step.blocks > 0 && !plain;
  }
  Statements statements;
  statements.of_process(step.lowering, step.accumulation, batch);
  statements.add("precision", std::string(to_string(step.precision)));
  statements.add_if(step.seq > 0, "seq", std::to_string(step.seq));
  statements.of_training(step.lowering);
  statements.of_tuning(step.fine_tuning, question.model.options.fine_tuning, step.blocks > 0);
  statements.of_question(question, step.lowering);
  step.stated = std::move(statements).taken();
  return step;
}

void add_rerun_blocks(EngineStep& step) {
  step.checkpoints_blocks = true;
  step.stated.push_back({"checkpoint", "all"});
}

std::string named(const StatedSetting& setting) {
  const bool is_field = setting.field.find(' ') == std::string::npos;
  const std::string field = is_field ? setting_name(setting.field) : setting.field;
  return setting.value.empty() ? field : fmt::format("{} {}", field, setting.value);
}

std::vector<std::string> unsaid_settings(const EngineStep& step, const EngineFile& file) {
  std::vector<std::string> lines = file.unsaid;
  for (const StatedSetting& setting : step.stated) {
    if (std::ranges::find(file.said, setting.field) != file.said.end()) continue;
    const auto place = std::ranges::find(script_places, setting.field, &ScriptPlace::field);
    lines.push_back(place == script_places.end()
                        ? named(setting)
                        : fmt::format("{}: {}", named(setting), place->where));
  }
  if (step.from_step_file) {
    lines.emplace_back(
        "adapters, a quantised base and checkpointed blocks: a step's file does not say whether it "
        "was made with them");
  }
  return lines;
}

}  // namespace stowage
