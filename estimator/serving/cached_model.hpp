// A causal language model's graph as it is served: with a cache behind each of its attentions.
//
//   ModelGraph read with so many positions as a pass takes -> with_cache -> ModelGraph
//
// Each attention that is causal (`causal`, or a `window`) reads a cache in place of the keys and
// values that the pass makes, with the new ones written into it (serving_rows.hpp). Heads that
// several query heads share are cached once, and a sliding window keeps min(window, context)
// tokens. A pass of several positions computes the logits of the last one alone, as transformers'
// logits_to_keep and vLLM do. What attention needs beside it follows the kind of cache:
//
//   dynamic, static   transformers: a mask where it makes one (masking_utils.py), and with it the
//                     shared heads repeated, or packed with a single query (sdpa_attention.py)
//   paged             neither
//
// Attention that is written as products (attention_products.hpp) stays so, over all that the cache
// gives, with a mask of numbers; of a paged cache, the server's own attention takes its place.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/serving/cached_attention.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// `model`: read with as many positions as the pass takes. Lowers for PyTorch's kernels, for
/// inference. Errors: no causal attention; attention that is not causal, or with a bias of its own;
/// recurrent layers, which keep another state; a window that a static cache is filled past chunk by
/// chunk.
[[nodiscard]] Result<ModelGraph> with_cache(const ModelGraph& model,
                                            const ServingSettings& settings, const CachePass& pass);

}  // namespace stowage
