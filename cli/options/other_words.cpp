#include "cli/options/other_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/options/option.hpp"
#include "estimator/optimizer/other_names.hpp"

namespace stowage {

namespace {

constexpr std::string_view no_size = "it changes no size: leave it out";

const std::vector<OtherWord>& table() {
  static const std::vector<OtherWord> words{
      // Batches.
      {.name = "per-device-train-batch-size", .option = "batch"},
      {.name = "per-gpu-train-batch-size", .option = "batch"},
      {.name = "train-batch-size", .option = "batch"},
      {.name = "micro-batch-size", .option = "batch"},
      {.name = "train-micro-batch-size-per-gpu", .option = "batch"},
      {.name = "bs", .option = "batch"},
      {.name = "per-device-eval-batch-size", .option = "eval-batch"},
      {.name = "eval-batch-size", .option = "eval-batch"},
      {.name = "gradient-accumulation-steps", .option = "accumulation"},
      {.name = "gradient-accumulation", .option = "accumulation"},
      {.name = "grad-accum-steps", .option = "accumulation"},
      {.name = "accumulate-grad-batches", .option = "accumulation"},
      {.name = "global-batch-size", .option = "global-batch"},
      // Lengths.
      {.name = "max-seq-length", .option = "seq"},
      {.name = "max-seq-len", .option = "seq"},
      {.name = "max-length", .option = "seq"},
      {.name = "model-max-length", .option = "seq"},
      {.name = "sequence-length", .option = "seq"},
      {.name = "seq-length", .option = "seq"},
      {.name = "seq-len", .option = "seq"},
      {.name = "block-size", .option = "seq"},
      {.name = "cutoff-len", .option = "seq"},
      {.name = "max-model-len", .option = "context-length"},
      // Number formats.
      {.name = "bf16", .option = "precision", .on = "amp-bf16"},
      {.name = "fp16", .option = "precision", .on = "amp-fp16"},
      {.name = "amp", .option = "precision", .on = "amp-fp16"},
      {.name = "half", .option = "precision", .on = "fp16"},
      {.name = "mixed-precision",
       .option = "precision",
       .values = {{"no", ""}, {"fp16", "amp-fp16"}, {"bf16", "amp-bf16"}}},
      {.name = "torch-dtype", .option = "precision"},
      {.name = "tf32", .option = "tf32", .on = "on"},
      {.name = "fp8",
       .hint = "training in FP8 is not modelled; --base fp8 is for a frozen base beside --lora"},
      {.name = "load-in-4bit", .option = "base", .on = "nf4"},
      {.name = "load-in-8bit", .option = "base", .on = "int8"},
      {.name = "use-4bit", .option = "base", .on = "nf4"},
      {.name = "use-8bit", .option = "base", .on = "int8"},
      // The optimizer.
      {.name = "optim", .option = "optimizer", .values = {{"adafactor", "adafactor-transformers"}}},
      {.name = "opt", .option = "optimizer"},
      // What is kept.
      {.name = "gradient-checkpointing", .option = "checkpoint", .on = "all"},
      {.name = "use-gradient-checkpointing",
       .option = "checkpoint",
       .on = "all",
       .values = {{"unsloth", "all"}}},
      {.name = "grad-checkpointing", .option = "checkpoint", .on = "all"},
      {.name = "activation-checkpointing", .option = "checkpoint", .on = "all"},
      {.name = "activation-offloading", .option = "offload-activations", .on = "all"},
      {.name = "channels-last", .option = "layout", .on = "nhwc"},
      {.name = "attn-implementation", .hint = "--set attention=eager or --set attention=sdpa"},
      // Adapters.
      {.name = "use-lora", .hint = "--lora r=16,alpha=32 has adapters beside frozen weights"},
      {.name = "use-peft", .hint = "--lora r=16,alpha=32 has adapters beside frozen weights"},
      {.name = "lora-r", .hint = "--lora r=16,alpha=32 has the rank"},
      {.name = "lora-rank", .hint = "--lora r=16,alpha=32 has the rank"},
      {.name = "lora-alpha", .hint = "--lora r=16,alpha=32 has both"},
      {.name = "lora-target-modules", .hint = "--lora r=16,targets=q_proj+v_proj has the layers"},
      {.name = "lora-target", .hint = "--lora r=16,targets=q_proj+v_proj has the layers"},
      // Several GPUs.
      {.name = "nproc-per-node", .option = "gpus"},
      {.name = "num-gpus", .option = "gpus"},
      {.name = "n-gpu", .option = "gpus"},
      {.name = "world-size", .option = "gpus"},
      {.name = "zero-stage", .option = "zero"},
      {.name = "deepspeed", .hint = "--gpus N --zero STAGE shards as DeepSpeed's ZeRO does"},
      {.name = "tensor-parallel-size",
       .hint = "tensors are not split among GPUs here; --gpus N with --zero or --fsdp shards them"},
      // The card.
      {.name = "vram", .option = "gpu-memory"},
      {.name = "gpu-mem", .option = "gpu-memory"},
      {.name = "device-memory", .option = "gpu-memory"},
      {.name = "gpu-memory-utilization",
       .hint = "--reserve SIZE keeps memory free; the rest of the card is available"},
      // The model.
      {.name = "model", .hint = "the model stands without an option: stowage check gpt2"},
      {.name = "model-name-or-path",
       .hint = "the model stands without an option: stowage check gpt2"},
      {.name = "arch", .hint = "the model stands without an option: stowage check resnet50"},
      // What changes no size.
      {.name = "learning-rate", .hint = no_size},
      {.name = "lr", .hint = no_size},
      {.name = "lr-scheduler-type", .hint = no_size},
      {.name = "num-train-epochs", .hint = no_size},
      {.name = "epochs", .hint = no_size},
      {.name = "max-steps", .hint = no_size},
      {.name = "warmup-steps", .hint = no_size},
      {.name = "warmup-ratio", .hint = no_size},
      {.name = "weight-decay", .hint = no_size},
      {.name = "seed", .hint = no_size},
      {.name = "output-dir", .hint = no_size},
      {.name = "logging-steps", .hint = no_size},
      {.name = "save-steps", .hint = no_size},
      {.name = "dataset", .hint = no_size},
      {.name = "dataset-name", .hint = no_size},
      {.name = "torch-compile",
       .hint = "sizes are those of PyTorch without torch.compile; --chunked-loss N,compiled is of "
               "the loss alone"},
  };
  return words;
}

std::string with_dashes(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  return dashed;
}

bool takes(const CommandSpec& command, std::string_view option) {
  return std::ranges::find(command.options, option) != command.options.end();
}

/// The command's option of that name or alias; "": it has none.
std::string_view own_option(const CommandSpec& command, std::string_view name) {
  for (const std::string_view option : command.options) {
    const auto& aliases = find_option(option)->aliases;
    if (option == name || std::ranges::find(aliases, name) != aliases.end()) return option;
  }
  return {};
}

const OtherWord* find_other_word(std::string_view name) {
  const auto found = std::ranges::find(table(), name, &OtherWord::name);
  return found == table().end() ? nullptr : &*found;
}

/// Whether a switch's value says on or off; nullopt: it is none.
std::optional<bool> truth(std::string_view value) {
  constexpr std::array<std::string_view, 5> on{"true", "True", "1", "yes", "on"},
      off{"false", "False", "0", "no", "off"};
  if (std::ranges::find(on, value) != on.end()) return true;
  if (std::ranges::find(off, value) != off.end()) return false;
  return std::nullopt;
}

/// An option as it is typed: its name, and the value behind '='.
struct TypedOption {
  std::string name;
  std::optional<std::string> value;
};
std::optional<TypedOption> typed_option(std::string_view word) {
  if (!word.starts_with("--") || word.size() == 2) return std::nullopt;
  const std::size_t equals = word.find('=');
  TypedOption option{with_dashes(word.substr(2, equals == word.npos ? word.npos : equals - 2)), {}};
  if (equals != word.npos) option.value = std::string(word.substr(equals + 1));
  return option;
}

class Translation {
 public:
  Translation(const CommandSpec& command, std::span<const std::string> words)
      : command_(command), words_(words) {}

  std::vector<std::string> run() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      if (words_[at_] == "--") break;
      const auto option = typed_option(words_[at_]);
      if (!option || !take(*option)) own_.push_back(words_[at_]);
    }
    own_.insert(own_.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    return std::move(own_);
  }

 private:
  /// False: the word stays as it is.
  bool take(const TypedOption& option) {
    const std::string_view own = own_option(command_, option.name);
    const OtherWord* const other = find_other_word(option.name);
    if (other != nullptr && takes(command_, other->option) && (own.empty() || !other->on.empty())) {
      return other->on.empty() ? rename(*other, option) : take_switch(*other, option, own);
    }
    if (own.empty()) return false;
    if (own == "optimizer") return rename({.name = own, .option = own}, option);
    if (words_[at_].find('_') == std::string::npos) return false;
    own_.push_back("--" + option.name + (option.value ? "=" + *option.value : std::string()));
    return true;
  }

  /// The word behind the option, if it is no option itself.
  [[nodiscard]] const std::string* next() const {
    if (at_ + 1 == words_.size() || words_[at_ + 1].starts_with('-')) return nullptr;
    return &words_[at_ + 1];
  }

  bool rename(const OtherWord& other, const TypedOption& option) {
    std::string value;
    if (option.value) {
      value = *option.value;
    } else if (const std::string* const word = next()) {
      value = *word;
      ++at_;
    } else {
      own_.push_back(fmt::format("--{}", other.option));
      return true;
    }
    if (value.empty()) {
      own_.push_back(fmt::format("--{}=", other.option));  // refused as a missing value
    } else {
      push(other.option, meaning(other, value));
    }
    return true;
  }

  /// `own`: the option where it has the switch's name too (--tf32 on); only a truth value is the
  /// switch's then.
  bool take_switch(const OtherWord& other, const TypedOption& option, std::string_view own) {
    const std::string* const word = option.value ? &*option.value : next();
    const auto is_on = word == nullptr ? std::optional<bool>() : truth(*word);
    const bool is_value = word != nullptr && (is_on || meaning(other, *word) != *word);
    if (!own.empty() && !is_value) return false;
    if (option.value && !is_value) return false;
    if (!option.value && is_value) ++at_;
    if (own.empty() && is_on == false) return true;
    if (is_on == false) {
      push(other.option, "off");
    } else {
      push(other.option, std::string(other.on));
    }
    return true;
  }

  static std::string meaning(const OtherWord& other, const std::string& value) {
    for (const auto& [word, meant] : other.values) {
      if (word == value) return std::string(meant);
    }
    return value;
  }

  /// Nothing where the value leaves the option out.
  void push(std::string_view option, const std::string& value) {
    if (value.empty()) return;
    const auto optimizer = option == "optimizer" ? optimizer_meant(value) : std::nullopt;
    own_.push_back(fmt::format("--{}={}", option, optimizer ? optimizer->name : value));
    if (!optimizer || optimizer->implementation == OptimizerImplementation::usual) return;
    own_.push_back(
        fmt::format("--optimizer-implementation={}", to_string(optimizer->implementation)));
  }

  const CommandSpec& command_;
  std::span<const std::string> words_;
  std::size_t at_ = 0;
  std::vector<std::string> own_;
};

}  // namespace

std::span<const OtherWord> other_words() { return table(); }

std::vector<std::string> in_own_words(const CommandSpec& command,
                                      std::span<const std::string> words) {
  return Translation(command, words).run();
}

std::string hint_for_other_word(const CommandSpec& command, std::string_view name) {
  const OtherWord* const other = find_other_word(with_dashes(name));
  if (other == nullptr) return {};
  if (!other->hint.empty()) return std::string(other->hint);
  if (takes(command, other->option)) return {};
  return fmt::format("it is --{} here, which stowage {} does not take", other->option,
                     command.name);
}

}  // namespace stowage
