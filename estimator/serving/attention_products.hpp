// Attention that a description writes as products around a softmax, as transformers'
// eager_attention_forward runs it:
//
//   [repeat_kv] -> matmul(query, keys^T) -> scale [, tanh] -> add(mask) -> softmax ->
//   matmul(values)
//
// It is causal where the mask is a `constant` that says so (`causal: true`, `window`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/model/model_graph.hpp"

namespace stowage {

struct AttentionProducts {
  TensorId query, key, value;  ///< four axes; keys and values with their own heads
  bool is_causal = false;
  TensorId mask;     ///< the constant; none: it is not causal
  TensorId weights;  ///< what the values are multiplied by
  TensorId result;
  std::int64_t window = 0;            ///< 0: none
  std::vector<OperatorId> operators;  ///< of keys and values, products and what is between them
  /// What has an axis for the keys: a tensor, and which of its axes.
  std::vector<std::pair<TensorId, std::size_t>> by_keys;

  [[nodiscard]] OperatorId first() const { return operators.front(); }
};

/// In the order of their operators, which for each are ascending.
[[nodiscard]] std::vector<AttentionProducts> attention_products(const ModelGraph& model);
/// Those of them that are causal.
[[nodiscard]] std::vector<AttentionProducts> causal_products(const ModelGraph& model);

}  // namespace stowage
