// Keys: AxolotlInputConfig of axolotl 0.19.0 (utils/schemas/config.py, training.py, peft.py,
// fsdp.py).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/exporting/trainer_words.hpp"
#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

constexpr FsdpWords axolotl_fsdp{.prefix = "", .version = "", .offload = "offload_params"};

class AxolotlWriter {
 public:
  explicit AxolotlWriter(const EngineStep& step) : step_(step) {}

  void add_batches() {
    tree_.add("micro_batch_size", step_.batch);
    tree_.add("gradient_accumulation_steps", step_.accumulation);
    say({"batch", "accumulation", "packing"});
    if (step_.seq > 0) {
      tree_.add("sequence_len", step_.seq);
      // Without it axolotl pads to the longest sample of a batch.
      tree_.add("pad_to_sequence_len", true);
      say({"seq"});
    }
    tree_.add("sample_packing", step_.states("packing"));
  }

  void add_precision(const TrainerPrecision& precision) {
    tree_.add("bf16", precision.bf16);
    tree_.add("fp16", precision.fp16);
    if (precision.load_type == DataType::bfloat16) tree_.add("bfloat16", true);
    if (precision.load_type == DataType::float16) tree_.add("float16", true);
    say({"precision"});
  }

  void add_optimizer() {
    const auto optimizer = trainer_optimizer(step_);
    if (!optimizer) {
      file_.remarks.emplace_back(
          "axolotl wants a key optimizer, and has none that is the counted one");
      return;
    }
    tree_.add("optimizer", optimizer->name);
    if (!optimizer->arguments.empty()) tree_.add("optim_args", optimizer->arguments);
    say({"optimizer"});
    if (optimizer->says_variant) say({"optimizer_implementation"});
  }

  void add_checkpoints() {
    if (add_checkpoints_of_trainer(step_, tree_)) say({"checkpoint"});
    if (step_.fine_tuning.offload) {
      tree_.add("activation_offloading", true);
      say({"offload_activations"});
      for (std::string& line : offload_remarks(*step_.fine_tuning.offload, "axolotl")) {
        file_.remarks.push_back(std::move(line));
      }
    }
    if (step_.fine_tuning.chunked_loss) {
      tree_.add("chunked_cross_entropy", true);
      tree_.add("chunked_cross_entropy_num_chunks", step_.fine_tuning.chunked_loss->chunks);
      say({"chunked_loss"});
      if (step_.fine_tuning.chunked_loss->compiled) {
        file_.remarks.emplace_back("`chunked_loss` compiled: axolotl has no key for it");
      }
      file_.uncounted.emplace_back(
          "axolotl's chunks are of the logits, which it makes whole first: counted is an output "
          "layer in chunks");
    }
  }

  void add_adapters() {
    const auto& base = step_.fine_tuning.base;
    const bool in_4_bits =
        base && (base->format == BaseFormat::nf4 || base->format == BaseFormat::fp4);
    const bool in_8_bits = base && base->format == BaseFormat::int8;
    if (const auto& lora = step_.fine_tuning.lora) add_lora(*lora, in_4_bits);
    if (!in_4_bits && !in_8_bits) return;
    tree_.add(in_4_bits ? "load_in_4bit" : "load_in_8bit", true);
    say({"base"});
    if (in_4_bits) {
      SettingsTree arguments;
      arguments.add("bnb_4bit_quant_type", code_name(base->format));
      arguments.add("bnb_4bit_use_double_quant", base->double_quantised);
      tree_.add("bnb_config_kwargs", std::move(arguments));
    }
    if (!base->skipped.empty()) {
      file_.remarks.emplace_back("`base` skip=: axolotl has no key for it");
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
    SettingsTree settings = fsdp_tree(step_, axolotl_fsdp);
    if (parallel.offload != Offload::none) {
      settings.add("cpu_offload_pin_memory", parallel.pinned);
    }
    tree_.add("fsdp_version", 2);
    tree_.add("fsdp_config", std::move(settings));
    say({"fsdp", "offload"});
    for (std::string& line : fsdp_remarks(step_)) {
      if (!line.starts_with("`offload`")) file_.remarks.push_back(std::move(line));
    }
    for (std::string& line : fsdp_uncounted(step_)) file_.uncounted.push_back(std::move(line));
  }

  [[nodiscard]] EngineFile taken() && {
    file_.remarks.emplace_back(
        "the model, the data and the learning rate: keys base_model, datasets and learning_rate, "
        "which axolotl wants and which change no memory that is counted here");
    file_.uncounted.emplace_back(
        "kernels that axolotl puts in the place of the model's (LoRA's, cross entropy's): they "
        "take "
        "less than is counted");
    file_.body = yaml_text(tree_);
    return std::move(file_);
  }

 private:
  void add_lora(const LoraSettings& lora, bool in_4_bits) {
    tree_.add("adapter", in_4_bits ? "qlora" : "lora");
    tree_.add("lora_r", lora.rank);
    tree_.add("lora_alpha", static_cast<std::int64_t>(lora.alpha));
    tree_.add("lora_dropout", lora.dropout);
    if (lora.targets == std::vector{std::string(all_linear)}) {
      tree_.add("lora_target_linear", true);
    } else {
      tree_.add("lora_target_modules", SettingsTree::list_of(lora.targets));
    }
    if (!lora.modules_to_save.empty()) {
      tree_.add("lora_modules_to_save", SettingsTree::list_of(lora.modules_to_save));
    }
    if (lora.rank_stabilised) tree_.add("peft_use_rslora", true);
    if (lora.decomposed) tree_.add("peft_use_dora", true);
    say({"lora"});
    for (std::string& line : lora_remarks(lora, "axolotl"))
      file_.remarks.push_back(std::move(line));
  }

  void say(std::initializer_list<std::string_view> fields) {
    file_.said.insert(file_.said.end(), fields);
  }
  const EngineStep& step_;
  SettingsTree tree_;
  EngineFile file_;
};

}  // namespace

Result<EngineFile> axolotl_file(const EngineStep& step) {
  const auto precision = trainer_precision(step, "axolotl");
  if (!precision) return tl::unexpected(precision.error());
  if (step.parallel().fsdp.on && !step.parallel().fsdp.by_block) {
    return failure(question_error("`fsdp` wrap=root: axolotl's auto_wrap_policy wraps blocks",
                                  "`to` accelerate has NO_WRAP"));
  }
  AxolotlWriter writer(step);
  writer.add_batches();
  writer.add_precision(*precision);
  writer.add_optimizer();
  writer.add_checkpoints();
  writer.add_adapters();
  writer.add_sharding();
  return std::move(writer).taken();
}

}  // namespace stowage
