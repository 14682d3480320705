// FineTuning: the settings of fine-tuning: adapters beside frozen weights, a quantised base,
// checkpointed blocks, formats of single layers, a chunked loss, saved tensors offloaded to the
// host, updates during backward.
//
// They are given in a description's `train:` and overridden by the command line; the room `adapt`
// applies them to the graph. Each setting is one line of text, with the same syntax in both places:
//
// clang-format off
//   lora                   r=16,alpha=32,dropout=0.05,targets=q_proj+v_proj
//   base                   nf4, fp4, int8, fp8, gptq, awq or int4; nf4,double_quant=false;
//                          gptq,bits=8,group=64
//   checkpoint             all, every=N, layers=PATTERN, selective=attention+matmul; several, by commas
//   layer_dtype            PATTERN=fp32; several, by commas
//   chunked_loss           8; 8,compiled
//   offload_activations    all; min_bytes=1024,stash=5,streams=false
//   optimizer_in_backward  true
// clang-format on
//
// Names and defaults are those of peft 0.21's LoraConfig, of bitsandbytes 0.50 as transformers'
// BitsAndBytesConfig sets it up, of torchao 0.18, torchtune 0.6 and TRL 1.16 (docs/fine-tuning.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/data_type.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/model/packed_layout.hpp"

namespace stowage {

/// The target that means every linear layer but the one whose result the model returns.
inline constexpr std::string_view all_linear = "all-linear";

/// Reads a floating-point format: fp32, float32, bf16, bfloat16, ... nullopt: it is none.
[[nodiscard]] std::optional<DataType> parse_format_word(std::string_view word);
inline constexpr std::string_view format_words_text = "fp32, bf16, fp16 or fp64";

enum class LoraBias : std::uint8_t { none, all, lora_only };

/// The rank or alpha of the adapters of some layers (peft's rank_pattern, alpha_pattern).
struct LayerNumber {
  std::string pattern;  ///< as in LoraSettings::targets
  double number = 0;
};

struct LoraSettings {
  std::int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  /// Last parts of layers' paths ("q_proj", "self_attn.q_proj"), patterns of whole paths
  /// ("layers.1?.*"), or all_linear; never empty.
  std::vector<std::string> targets;
  std::vector<std::string> modules_to_save;  ///< as targets: fully trained, beside a frozen copy
  std::optional<DataType> type;    ///< of the adapters; none: float32 if the weights are 16-bit
  LoraBias bias = LoraBias::none;  ///< which biases of the base model are trained
  bool rank_stabilised = false;    ///< scaled by alpha / sqrt(r) instead of alpha / r
  bool decomposed = false;         ///< DoRA: magnitude and direction
  std::vector<LayerNumber> ranks, alphas;  ///< the first match counts
};
/// The settings of the layer with that path: its own rank and alpha.
[[nodiscard]] LoraSettings settings_of_layer(const LoraSettings& lora, std::string_view layer);
[[nodiscard]] double scaling_of(const LoraSettings& lora);

/// `packed`: GPTQ's, AWQ's and the other layouts of packed_layout.hpp.
enum class BaseFormat : std::uint8_t { nf4, fp4, int8, fp8, packed };

/// How the weights of the frozen linear layers are quantised.
struct BaseSettings {
  BaseFormat format = BaseFormat::nf4;
  bool double_quantised = true;  ///< 4 bits: also quantise the blocks' maxima
  PackedLayout packed;           ///< if the format is `packed`
  bool trains_adapters = true;   ///< adapters beside it can be trained
  /// As LoraSettings::targets: layers that are not quantised. Empty: only the output layer, as in
  /// transformers.
  std::vector<std::string> skipped;
};
/// "nf4"; "GPTQ, 4 bits, groups of 128"
[[nodiscard]] std::string to_string(const BaseSettings& base);
/// "nf4" and "fp4" alone.
[[nodiscard]] std::string_view code_name(BaseFormat format);

struct CheckpointFormats;  // checkpoint_formats.hpp

/// The operators whose results a selective checkpoint keeps.
struct KeptResults {
  bool attention = false, products = false;
};

struct CheckpointSettings {
  std::int64_t every = 1;             ///< every n-th repeated block, from the first on
  std::vector<std::string> patterns;  ///< patterns of layers' paths; empty: the repeated blocks
  KeptResults kept;
};

/// The format of the parameters of some layers.
struct LayerType {
  std::string pattern;
  DataType type = DataType::float32;
};

/// Computes the output layer and the loss in chunks of the sequence.
struct ChunkedLossSettings {
  std::int64_t chunks = 8;
  bool compiled = false;  ///< torch.compile is applied to the loss of a chunk only
};

/// Moves tensors that autograd saves to the host until backward needs them.
struct OffloadSettings {
  std::int64_t least_bytes = 1024;  ///< smaller tensors stay on the GPU
  std::int64_t stash = 5;           ///< how many saved tensors may be in flight
  bool streams = true;              ///< copies overlap with kernels
};

struct FineTuning {
  std::optional<LoraSettings> lora;
  std::optional<BaseSettings> base;
  /// How the checkpoint's weights are quantised, which holds where no base is asked for; null: not.
  std::shared_ptr<const CheckpointFormats> stored;
  std::optional<CheckpointSettings> checkpoint;
  std::vector<LayerType> layer_types;  ///< the first match counts
  std::optional<ChunkedLossSettings> chunked_loss;
  std::optional<OffloadSettings> offload;
  bool optimizer_in_backward = false;  ///< update each parameter as soon as its gradient is ready
};

/// The settings as the texts that were given, which a plan file repeats; absent: not given.
struct FineTuningTexts {
  std::optional<std::string> lora, base, checkpoint, layer_dtype, chunked_loss, offload_activations,
      optimizer_in_backward;
  bool operator==(const FineTuningTexts&) const = default;
  [[nodiscard]] bool empty() const { return *this == FineTuningTexts{}; }
};

inline constexpr std::size_t longest_fine_tuning_text = 4096;  ///< bytes

// Errors, without a place: an unknown, repeated or missing key, an invalid value, a text that is
// too long.
[[nodiscard]] Result<LoraSettings> parse_lora(std::string_view text);
[[nodiscard]] Result<BaseSettings> parse_base(std::string_view text);
[[nodiscard]] Result<CheckpointSettings> parse_checkpoint(std::string_view text);
[[nodiscard]] Result<std::vector<LayerType>> parse_layer_types(std::string_view text);
[[nodiscard]] Result<ChunkedLossSettings> parse_chunked_loss(std::string_view text);
[[nodiscard]] Result<OffloadSettings> parse_offload(std::string_view text);

/// Parses the given texts into `settings`, and keeps its other members. Errors: as above, each
/// starting with the setting's name, "lora: ...".
[[nodiscard]] Result<void> read_fine_tuning(const FineTuningTexts& texts, FineTuning& settings);

}  // namespace stowage
