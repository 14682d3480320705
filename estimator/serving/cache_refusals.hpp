// The reasons why a model, or one of its attentions, cannot be served with a cache.
#pragma once

#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/serving/cached_attention.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// By operator: whether the model's output depends on it.
[[nodiscard]] std::vector<bool> leads_to_output(const ModelGraph& model);

/// `has_encoder`: attention that is not causal belongs to an encoder, or reads one.
[[nodiscard]] std::optional<Diagnostic> serving_refusal(const ModelGraph& model, bool has_encoder);

[[nodiscard]] std::optional<Diagnostic> caching_refusal(const ModelGraph& model,
                                                        const ModelAttention& attended,
                                                        const CachedAttention& sizes,
                                                        const ServingSettings& settings,
                                                        const CachePass& pass);

}  // namespace stowage
