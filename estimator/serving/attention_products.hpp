// AttentionProducts: attention that a description writes as products around a softmax, as
// transformers' eager_attention_forward runs it:
//
//   [repeat_kv] -> matmul(query, keys^T) -> scale [, tanh] -> add(mask) ->
//   softmax or sink_softmax -> matmul(values)
//
// It is causal if the mask is a `constant` with `causal: true` or a `window`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/model/model_graph.hpp"

namespace stowage {

struct AttentionProducts {
  TensorId query, key, value;  ///< with four axes; keys and values before their heads are repeated
  bool is_causal = false;
  TensorId mask;     ///< the mask's constant; none: not causal
  TensorId weights;  ///< the softmax's result, which is multiplied by the values
  TensorId sinks;    ///< a sink_softmax's second input; none: a softmax
  TensorId result;
  std::int64_t window = 0;            ///< 0: none
  std::vector<OperatorId> operators;  ///< all operators from repeat_kv to the last product
  /// The tensors that have an axis for the keys, and the number of that axis.
  std::vector<std::pair<TensorId, std::size_t>> by_keys;

  [[nodiscard]] OperatorId first() const { return operators.front(); }
};

/// All such attentions, in execution order; `operators` is ascending.
[[nodiscard]] std::vector<AttentionProducts> attention_products(const ModelGraph& model);
/// Only the causal ones.
[[nodiscard]] std::vector<AttentionProducts> causal_products(const ModelGraph& model);

}  // namespace stowage
