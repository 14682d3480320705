// RewiredProducts: copies attention that is written as products into another graph, where it reads
// the keys and values of a cache. It also models the variables of transformers' Python code:
// eager_attention_forward and its caller hold the query, and the keys and values before and after
// their heads are repeated, until the function returns. A layer holds the weights in `_` until it
// returns, which is at the last sum before the next attention.
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
  /// The arguments must outlive it, and only `editor` may change. `within`: by operator, whether
  /// `products` may contain it; empty: all.
  RewiredProducts(const ModelGraph& model, const std::vector<AttentionProducts>& products,
                  GraphEditor& editor, const std::vector<bool>& within = {});

  /// The attention that contains the operator; nullptr: there is none.
  [[nodiscard]] const AttentionProducts* part_of(OperatorId op) const;

  /// Appends an operator of an attention that reads `keys` tokens of `cached`, which are keys and
  /// values.
  void put(OperatorId op, const std::vector<TensorId>& cached, std::int64_t keys);
  /// Must be called after each appended operator.
  void after(OperatorId op);
  /// Appends the operator, with `keys` as the length of that axis of its result.
  void put_widened(const Operator& op, std::size_t axis, std::int64_t keys);

 private:
  void hold_variables(const Operator& last, const AttentionProducts& products,
                      const std::vector<TensorId>& cached);

  const ModelGraph& model_;
  GraphEditor& editor_;
  std::map<OperatorId, const AttentionProducts*> parts_;       // by operator
  std::map<OperatorId, const AttentionProducts*> block_ends_;  // by a layer's last sum
  TensorId keys_multiplied_;  // the keys in the product with the queries, with all heads
};

}  // namespace stowage
