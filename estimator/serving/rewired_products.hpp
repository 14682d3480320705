// Attention in products, written into another graph over the keys and values of a cache, with what
// transformers' Python holds meanwhile: eager_attention_forward and its caller have the query, and
// keys and values before and after their heads are repeated, in variables until it returns; a layer
// has the weights in `_` until it returns, by the last sum before the next attention.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "estimator/model/model_graph.hpp"
#include "estimator/serving/attention_products.hpp"
#include "estimator/serving/graph_editor.hpp"

namespace stowage {

class RewiredProducts {
 public:
  /// All but `editor` outlive it unchanged. `within`: by operator, where `products` stand; empty:
  /// anywhere.
  RewiredProducts(const ModelGraph& model, const std::vector<AttentionProducts>& products,
                  GraphEditor& editor, const std::vector<bool>& within = {});

  /// The attention that the operator is a part of; none: nullptr.
  [[nodiscard]] const AttentionProducts* part_of(OperatorId op) const;

  /// The next operator, a part of an attention; its keys are so many of `cached`, keys and values.
  void put(OperatorId op, const std::vector<TensorId>& cached, std::int64_t keys);
  /// After each operator that is kept.
  void after(OperatorId op);
  /// The operator, whose result has so many keys on the axis.
  void put_widened(const Operator& op, std::size_t axis, std::int64_t keys);

 private:
  void hold_variables(const Operator& last, const AttentionProducts& products,
                      const std::vector<TensorId>& cached);

  const ModelGraph& model_;
  GraphEditor& editor_;
  std::map<OperatorId, const AttentionProducts*> parts_;       // by operator
  std::map<OperatorId, const AttentionProducts*> block_ends_;  // by a layer's last sum
  TensorId keys_multiplied_;                                   // by its queries, with all heads
};

}  // namespace stowage
