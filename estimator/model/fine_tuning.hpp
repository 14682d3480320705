// FineTuning: how a model is changed before it is trained: adapters beside frozen weights, a
// quantised base, checkpointed blocks, layers in a format of their own, a loss in chunks, saved
// tensors on the host, updates within backward.
//
// A description says it in `train:`, a command line over it; what it does to the graph is the room
// `adapt`. Each part is read from one line of text, the same in both places:
//
//   lora         r=16,alpha=32,dropout=0.05,targets=q_proj+v_proj
//   base         nf4, fp4, int8 or fp8; nf4,double_quant=false
//   checkpoint   all, every=N, layers=PATTERN, selective=attention+matmul; several, by commas
//   layer_dtype  PATTERN=fp32; several, by commas
//   chunked_loss             8; 8,compiled
//   offload_activations      all; min_bytes=1024,stash=5,streams=false
//   optimizer_in_backward    true
//
// Names and defaults are those of peft 0.21's LoraConfig, of bitsandbytes 0.50 as transformers'
// BitsAndBytesConfig sets it up, of torchao 0.18, torchtune 0.6 and TRL 1.16 (docs/fine-tuning.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/data_type.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// The target that means every linear layer but the one whose result the model returns.
inline constexpr std::string_view all_linear = "all-linear";

/// A floating-point format as people write it: fp32, float32, bf16, bfloat16, ... nullopt: none.
[[nodiscard]] std::optional<DataType> parse_format_word(std::string_view word);
inline constexpr std::string_view format_words_text = "fp32, bf16, fp16 or fp64";

enum class LoraBias : std::uint8_t { none, all, lora_only };

/// Layers whose adapters have a rank or a scale of their own (peft's rank_pattern, alpha_pattern).
struct LayerNumber {
  std::string pattern;  ///< as LoraSettings::targets
  double number = 0;
};

struct LoraSettings {
  std::int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  /// Last parts of layers' paths ("q_proj", "self_attn.q_proj"), patterns of whole paths
  /// ("layers.1?.*"), or all_linear; never empty.
  std::vector<std::string> targets;
  std::vector<std::string> modules_to_save;  ///< as targets: trained whole, beside a frozen copy
  std::optional<DataType> type;              ///< of adapters; none: float32 beside 16-bit weights
  LoraBias bias = LoraBias::none;            ///< which biases of the base are trained
  bool rank_stabilised = false;              ///< scaled by alpha / sqrt(r), else by alpha / r
  bool decomposed = false;                   ///< DoRA: a magnitude beside the direction
  std::vector<LayerNumber> ranks, alphas;    ///< the first that fits counts
};
/// Of a layer whose path is `layer`.
[[nodiscard]] LoraSettings settings_of_layer(const LoraSettings& lora, std::string_view layer);
[[nodiscard]] double scaling_of(const LoraSettings& lora);

enum class BaseFormat : std::uint8_t { nf4, fp4, int8, fp8 };
[[nodiscard]] std::string_view to_string(BaseFormat format);

/// The frozen linear layers' weights.
struct BaseSettings {
  BaseFormat format = BaseFormat::nf4;
  bool double_quantised = true;  ///< of 4 bits: the blocks' maxima are quantised too
  /// As LoraSettings::targets: layers whose weights stay as they are. Empty: the layer whose result
  /// the model returns, as transformers leaves it.
  std::vector<std::string> skipped;
};

/// Which operators' results a selective checkpoint keeps.
struct KeptResults {
  bool attention = false, products = false;
};

struct CheckpointSettings {
  std::int64_t every = 1;             ///< of the repeated blocks, the first one included
  std::vector<std::string> patterns;  ///< of layers' paths; empty: the repeated blocks
  KeptResults kept;
};

/// Layers whose parameters have a format of their own.
struct LayerType {
  std::string pattern;
  DataType type = DataType::float32;
};

/// The output layer and the loss in parts of the sequence.
struct ChunkedLossSettings {
  std::int64_t chunks = 8;
  bool compiled = false;  ///< torch.compile of the loss of a chunk, and of nothing else
};

/// Tensors that autograd saves go to the host until backward wants them.
struct OffloadSettings {
  std::int64_t least_bytes = 1024;  ///< smaller ones stay
  std::int64_t stash = 5;           ///< copies that may be under way; saved tensors are counted
  bool streams = true;              ///< copies run beside the kernels
};

struct FineTuning {
  std::optional<LoraSettings> lora;
  std::optional<BaseSettings> base;
  std::optional<CheckpointSettings> checkpoint;
  std::vector<LayerType> layer_types;  ///< the first that fits counts
  std::optional<ChunkedLossSettings> chunked_loss;
  std::optional<OffloadSettings> offload;
  bool optimizer_in_backward = false;  ///< each parameter updated when its gradient has come
};

/// The texts as they were given; absent: not said. What a plan file repeats.
struct FineTuningTexts {
  std::optional<std::string> lora, base, checkpoint, layer_dtype, chunked_loss, offload_activations,
      optimizer_in_backward;
  bool operator==(const FineTuningTexts&) const = default;
  [[nodiscard]] bool empty() const { return *this == FineTuningTexts{}; }
};

inline constexpr std::size_t longest_fine_tuning_text = 4096;  ///< bytes

// Errors: an unknown, repeated or missing key, a value that does not suit, a text too long; without
// a place.
[[nodiscard]] Result<LoraSettings> parse_lora(std::string_view text);
[[nodiscard]] Result<BaseSettings> parse_base(std::string_view text);
[[nodiscard]] Result<CheckpointSettings> parse_checkpoint(std::string_view text);
[[nodiscard]] Result<std::vector<LayerType>> parse_layer_types(std::string_view text);
[[nodiscard]] Result<ChunkedLossSettings> parse_chunked_loss(std::string_view text);
[[nodiscard]] Result<OffloadSettings> parse_offload(std::string_view text);

/// Parses those that are said into `settings`, which keeps the others. Errors: as above, each
/// starting with its option's name, "lora: ...".
[[nodiscard]] Result<void> read_fine_tuning(const FineTuningTexts& texts, FineTuning& settings);

}  // namespace stowage
