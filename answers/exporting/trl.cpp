// Keys: SFTConfig and ModelConfig of TRL 1.16.0, which `trl sft --config` reads together, over
// TrainingArguments of transformers 5.24.0.
#include <fmt/format.h>

#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/exporting/trainer_words.hpp"

namespace stowage {

namespace {

constexpr FsdpWords trainer_fsdp{.prefix = "", .version = "version", .offload = "cpu_offload"};

class TrlWriter {
 public:
  explicit TrlWriter(const EngineStep& step) : step_(step) {}

  void add_batches() {
    tree_.add("per_device_train_batch_size", step_.batch);
    tree_.add("gradient_accumulation_steps", step_.accumulation);
    say({"batch", "accumulation"});
    if (step_.seq > 0) {
      tree_.add("max_length", step_.seq);
      say({"seq"});
    }
    tree_.add("packing", step_.states("packing"));
    say({"packing"});
    if (step_.states("packing")) {
      file_.remarks.emplace_back(
          "packing joins samples up to max_length; `set` segments= says how many were counted");
    }
  }

  void add_precision(const TrainerPrecision& precision) {
    tree_.add("bf16", precision.bf16);
    tree_.add("fp16", precision.fp16);
    tree_.add("dtype", to_string(precision.load_type.value_or(DataType::float32)));
    say({"precision"});
    if (step_.states("tf32")) {
      file_.remarks.emplace_back("`tf32` is of convolutions; the key tf32 is of matrix products");
    }
  }

  void add_optimizer() {
    const auto optimizer = trainer_optimizer(step_);
    if (!optimizer) {
      file_.remarks.emplace_back("without an optimizer of the script's the Trainer makes AdamW");
      return;
    }
    tree_.add("optim", optimizer->name);
    if (!optimizer->arguments.empty()) tree_.add("optim_args", optimizer->arguments);
    say({"optimizer"});
    if (optimizer->says_variant) say({"optimizer_implementation"});
  }

  void add_checkpoints() {
    if (add_checkpoints_of_trainer(step_, tree_)) say({"checkpoint"});
    tree_.add("activation_offloading", step_.fine_tuning.offload.has_value());
    if (!step_.fine_tuning.offload) return;
    say({"offload_activations"});
    for (std::string& line : offload_remarks(*step_.fine_tuning.offload, "TRL")) {
      file_.remarks.push_back(std::move(line));
    }
  }

  void add_adapters() {
    if (!step_.fine_tuning.lora) return;
    const LoraSettings& lora = *step_.fine_tuning.lora;
    tree_.add("use_peft", true);
    tree_.add("lora_r", lora.rank);
    tree_.add("lora_alpha", static_cast<std::int64_t>(lora.alpha));
    tree_.add("lora_dropout", lora.dropout);
    tree_.add("lora_target_modules", SettingsTree::list_of(lora.targets));
    if (!lora.modules_to_save.empty()) {
      tree_.add("lora_modules_to_save", SettingsTree::list_of(lora.modules_to_save));
    }
    tree_.add("use_rslora", lora.rank_stabilised);
    tree_.add("use_dora", lora.decomposed);
    say({"lora"});
    for (std::string& line : lora_remarks(lora, "TRL")) file_.remarks.push_back(std::move(line));
  }

  void add_base() {
    const auto& base = step_.fine_tuning.base;
    if (!base) return;
    if (base->format == BaseFormat::nf4 || base->format == BaseFormat::fp4) {
      tree_.add("load_in_4bit", true);
      tree_.add("bnb_4bit_quant_type", code_name(base->format));
      tree_.add("use_bnb_nested_quant", base->double_quantised);
    } else if (base->format == BaseFormat::int8) {
      tree_.add("load_in_8bit", true);
    } else {
      return;
    }
    say({"base"});
    if (!base->skipped.empty()) {
      file_.remarks.emplace_back("`base` skip=: TRL has no key for it");
    }
  }

  void add_sharding() {
    const DataParallel& parallel = step_.parallel();
    if (parallel.zero > 0) {
      tree_.add("deepspeed", deepspeed_tree_of_trainer(step_));
      say({"zero", "offload", "master_gradients"});
      for (const std::string& line : deepspeed_uncounted(step_)) file_.uncounted.push_back(line);
    }
    if (!parallel.fsdp.on) return;
    tree_.add("fsdp", true);
    tree_.add("fsdp_config", fsdp_tree(step_, trainer_fsdp));
    say({"fsdp", "offload"});
    for (std::string& line : fsdp_remarks(step_)) file_.remarks.push_back(std::move(line));
    for (std::string& line : fsdp_uncounted(step_)) file_.uncounted.push_back(std::move(line));
  }

  [[nodiscard]] EngineFile taken() && {
    file_.remarks.emplace_back(
        "the model, the data and the learning rate: keys model_name_or_path, dataset_name and "
        "learning_rate, which change no memory that is counted here");
    file_.uncounted.emplace_back(
        "SFTTrainer's loss 'nll', which does not make the logits whole: it takes less than is "
        "counted");
    file_.body = yaml_text(tree_);
    return std::move(file_);
  }

 private:
  void say(std::initializer_list<std::string_view> fields) {
    file_.said.insert(file_.said.end(), fields);
  }
  const EngineStep& step_;
  SettingsTree tree_;
  EngineFile file_;
};

}  // namespace

Result<EngineFile> trl_file(const EngineStep& step) {
  const auto precision = trainer_precision(step, "TRL");
  if (!precision) return tl::unexpected(precision.error());
  TrlWriter writer(step);
  writer.add_batches();
  writer.add_precision(*precision);
  writer.add_optimizer();
  writer.add_checkpoints();
  writer.add_adapters();
  writer.add_base();
  writer.add_sharding();
  return std::move(writer).taken();
}

}  // namespace stowage
