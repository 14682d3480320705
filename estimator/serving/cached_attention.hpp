// CachedAttention: the sizes of one attention in a serving pass.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/model/model_graph.hpp"
#include "estimator/serving/attention_products.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// A serving pass: the tokens that are already cached.
struct CachePass {
  std::int64_t past = 0;  ///< tokens of each user that are already cached
  /// All users whose caches are in memory, including those of the batch; 0: only those of the
  /// batch.
  std::int64_t users = 0;
  /// Attention that is not causal belongs to an encoder or reads one, and is not changed
  /// (encoder_decoder.hpp).
  bool has_encoder = false;
};

/// An attention of a model, written as one operator or as products.
struct ModelAttention {
  std::string name;
  TensorId query, key, value;
  std::int64_t window = 0;
  SourceSpan span;
};

/// `op`: scaled_dot_product_attention.
[[nodiscard]] ModelAttention model_attention(const Operator& op);
[[nodiscard]] ModelAttention model_attention(const AttentionProducts& products,
                                             const ModelGraph& model);
[[nodiscard]] bool is_attention(const Operator& op);
[[nodiscard]] bool is_causal_attention(const Operator& op);

struct CachedAttention {
  std::int64_t heads = 0, key_heads = 0;
  std::int64_t tokens = 0;  ///< new tokens, which are the queries
  std::int64_t window = 0;  ///< 0: none
  std::int64_t kept = 0;    ///< tokens of a user for which the cache has room
  std::int64_t read = 0;    ///< number of keys that attention reads
  std::int64_t newest = 0;  ///< newest cached tokens, which a quantised cache does not quantise
  bool masked = false;      ///< PyTorch's operator gets a mask; products always have one
};

/// `query`, `key`: [batch, heads, tokens, features]
[[nodiscard]] CachedAttention cached_attention(const Shape& query, const Shape& key,
                                               std::int64_t window, const ServingSettings& settings,
                                               const CachePass& pass);

/// Whether prompts in chunks write more tokens to a static cache than its window holds.
[[nodiscard]] bool chunks_exceed_window(const CachedAttention& sizes,
                                        const ServingSettings& settings, const CachePass& pass);

}  // namespace stowage
