// ServingSettings: serving is inference of a causal language model, or of an encoder-decoder, with
// a cache of the keys and values of earlier tokens.
//
// Two kinds of steps run: prefill takes the tokens of prompts and fills the cache; decode adds one
// token for each user. The last one of each kind is sized, when every user's context is full.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "estimator/base/data_type.hpp"

namespace stowage {

/// How the cache is laid out, and which library's kernels read it.
enum class CacheKind {
  /// transformers' DynamicCache, the default of generate(): torch.cat of cached and new tokens, so
  /// that a layer's old and new copies exist at the same time.
  dynamic,
  /// transformers' StaticCache: the whole context is allocated when it is first used, and written
  /// in place; attention has a mask over all of it.
  static_,
  /// Blocks of a few tokens, allocated before serving starts and written in place, as in vLLM.
  /// Attention reads them through a table, without a mask or copies.
  paged,
  /// transformers' QuantizedCache (`cache_implementation="quantized"`): int4 and int2, which quanto
  /// packs in groups, beside the newest tokens, which are not quantised; fp8 with one scale.
  quantised,
};
[[nodiscard]] std::string_view to_string(CacheKind kind);
[[nodiscard]] std::optional<CacheKind> find_cache_kind(std::string_view name);

/// The format of the cache's elements.
enum class CacheFormat {
  model,  ///< the format in which the model computes keys and values
  fp8,    ///< one byte; a float32 scale for a layer's keys and one for its values
  int8,   ///< the same
  fp16,
  bf16,
  fp32,
  int4,  ///< two elements per byte; a scale and a shift for each group
  int2,  ///< four elements per byte; scales as for int4
};
[[nodiscard]] std::string_view to_string(CacheFormat format);
[[nodiscard]] std::optional<CacheFormat> find_cache_format(std::string_view name);
/// The element type of the cache's storage if the model computes in `model`: bytes for fp8 and
/// int8.
[[nodiscard]] DataType stored_type(CacheFormat format, DataType model);
/// Whether only transformers' quantised cache can store the format.
[[nodiscard]] bool is_packed(CacheFormat format);
/// Whether a layer's keys and values have a scale each.
[[nodiscard]] bool has_scale(CacheFormat format);

struct ServingSettings {
  std::int64_t context_length = 0;  ///< tokens of one user (in the decoder), at least 1
  std::int64_t users = 1;
  CacheKind cache = CacheKind::paged;
  /// The kind was not asked for, and may be changed to suit the model.
  bool cache_is_default = false;
  CacheFormat format = CacheFormat::model;
  std::int64_t group = 64;      ///< elements that share a scale in a quantised cache: q_group_size
  std::int64_t residual = 128;  ///< newest tokens that it does not quantise: residual_length
  std::int64_t block = 16;      ///< tokens of a paged cache's block; vLLM's default
  /// Tokens of a prefill step. Paged: of all users together, as vLLM's max_num_batched_tokens; else
  /// of each user. None: whole prompts.
  std::optional<std::int64_t> prefill_chunk = {};
  /// Positions of the encoder of an encoder-decoder; none: the model's default `seq`.
  std::optional<std::int64_t> encoder_length = {};
};

/// The tokens of cache that a user's `tokens` occupy: whole blocks in a paged cache.
[[nodiscard]] std::int64_t cached_tokens(std::int64_t tokens, const ServingSettings& settings);

}  // namespace stowage
