// One attention's sizes in a pass over a cache.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/model/model_graph.hpp"
#include "estimator/serving/attention_products.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// The tokens that a model is run over.
struct CachePass {
  std::int64_t past = 0;   ///< of each user, cached before
  std::int64_t users = 0;  ///< whose caches lie beside those of the batch, these included; 0: none
  /// Attention that is not causal is an encoder's or reads one, and stays as it is
  /// (encoder_decoder.hpp).
  bool has_encoder = false;
};

/// An attention, in one call or in products.
struct Attended {
  std::string name;
  TensorId query, key, value;
  std::int64_t window = 0;
  SourceSpan span;
};

/// `op`: scaled_dot_product_attention.
[[nodiscard]] Attended attended_by(const Operator& op);
[[nodiscard]] Attended attended_by(const AttentionProducts& products, const ModelGraph& model);
[[nodiscard]] bool is_attention(const Operator& op);
[[nodiscard]] bool is_causal_attention(const Operator& op);

struct CachedAttention {
  std::int64_t heads = 0, key_heads = 0;
  std::int64_t tokens = 0;  ///< new ones, which are its queries
  std::int64_t window = 0;  ///< 0: none
  std::int64_t kept = 0;    ///< tokens of a user that the cache has room for
  std::int64_t read = 0;    ///< keys that attention reads
  std::int64_t newest = 0;  ///< cached tokens that a quantised cache keeps as computed
  bool masked = false;      ///< in one call of PyTorch's; products have a mask always
};

/// `query`, `key`: [batch, heads, tokens, features]
[[nodiscard]] CachedAttention cached_attention(const Shape& query, const Shape& key,
                                               std::int64_t window, const ServingSettings& settings,
                                               const CachePass& pass);

/// Prompts in chunks that fill a static cache past the window.
[[nodiscard]] bool is_cut_by_chunks(const CachedAttention& sizes, const ServingSettings& settings,
                                    const CachePass& pass);

}  // namespace stowage
