// Serving: inference of a causal language model, or of a decoder behind an encoder, that keeps the
// keys and values of earlier tokens.
//
// Two steps are run again and again: prefill takes the tokens of prompts and fills the cache,
// decode adds one token for each user. Sizes are those of the last of each: when every user's
// context is full.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "estimator/base/data_type.hpp"

namespace stowage {

/// How the cache is laid out, and which library's kernels read it.
enum class CacheKind {
  /// transformers' DynamicCache, what generate() takes by default: torch.cat of what was cached and
  /// what is new, so that a layer's old and new copies are there at once.
  dynamic,
  /// transformers' StaticCache: the whole context is allocated when it is first used, and written
  /// in place; attention has a mask over all of it.
  static_,
  /// Blocks of a few tokens, allocated before serving starts and written in place, as vLLM's; its
  /// attention reads them through a table, without a mask or copies.
  paged,
  /// transformers' QuantizedCache (`cache_implementation="quantized"`): int4 and int2 as quanto
  /// packs
  /// them in groups, beside the newest tokens as they were computed; fp8 with one scale.
  quantised,
};
[[nodiscard]] std::string_view to_string(CacheKind kind);
[[nodiscard]] std::optional<CacheKind> find_cache_kind(std::string_view name);

/// What an element of the cache is stored as.
enum class CacheFormat {
  model,  ///< as the model computes keys and values
  fp8,    ///< one byte, with a float32 scale for a layer's keys and one for its values
  int8,   ///< the same
  fp16,
  bf16,
  fp32,
  int4,  ///< two elements in a byte, with a scale and a shift for each group
  int2,  ///< four elements in a byte, the same
};
[[nodiscard]] std::string_view to_string(CacheFormat format);
[[nodiscard]] std::optional<CacheFormat> find_cache_format(std::string_view name);
/// The storage's element type where the model computes in `model`: bytes for fp8 and int8.
[[nodiscard]] DataType stored_type(CacheFormat format, DataType model);
/// Whether it is one that only transformers' quantised cache stores.
[[nodiscard]] bool is_packed(CacheFormat format);
/// Whether a scale belongs to a layer's keys and to its values.
[[nodiscard]] bool has_scale(CacheFormat format);

struct ServingSettings {
  std::int64_t context_length = 0;  ///< tokens of one user, at least 1; the decoder's
  std::int64_t users = 1;
  CacheKind cache = CacheKind::paged;
  bool any_cache = false;  ///< nobody has asked for this kind: it may be what suits the model
  CacheFormat format = CacheFormat::model;
  std::int64_t group = 64;      ///< elements that share a scale in a quantised cache: q_group_size
  std::int64_t residual = 128;  ///< the newest tokens that it keeps as computed: residual_length
  std::int64_t block = 16;      ///< tokens of a paged cache's block: vLLM's usual one
  /// The tokens that a prefill step takes. paged: of all users together, as vLLM's
  /// max_num_batched_tokens; else of each user. None: prompts at once.
  std::optional<std::int64_t> prefill_chunk = {};
  /// Positions of an encoder before the decoder that is served; none: the model's usual `seq`.
  std::optional<std::int64_t> encoder_length = {};
};

/// What a user's `tokens` take of a cache: whole blocks of a paged one.
[[nodiscard]] std::int64_t cached_tokens(std::int64_t tokens, const ServingSettings& settings);

}  // namespace stowage
