// Rewrites a causal language model's graph for serving: adds a cache to each of its attentions.
//
//   ModelGraph read with the number of tokens of a pass -> with_cache -> ModelGraph
//
// The keys and values of each causal attention (`causal`, or a `window`) are written into a cache,
// and the attention reads the cache (serving_rows.hpp). Heads that several query heads share are
// cached once, and a sliding window keeps min(window, context) tokens. A pass over several tokens
// computes only the logits of the last one, as transformers' logits_to_keep and vLLM do. Further
// tensors depend on the kind of cache:
//
//   dynamic, static   transformers: a mask where it makes one (masking_utils.py), and with it the
//                     shared heads repeated, or packed with a single query (sdpa_attention.py)
//   paged             neither
//
// Attention that is written as products (attention_products.hpp) remains so, over all keys of the
// cache and with a mask of numbers; with a paged cache it is replaced by the server's attention.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/serving/cached_attention.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// `model`: read with the pass's number of tokens as its sequence length. The result can only be
/// lowered for inference with PyTorch's kernels. Errors: no causal attention; an attention that is
/// not causal or has a bias; recurrent layers, which have another state; chunks that exceed the
/// window of a static cache.
[[nodiscard]] Result<ModelGraph> with_cache(const ModelGraph& model,
                                            const ServingSettings& settings, const CachePass& pass);

}  // namespace stowage
