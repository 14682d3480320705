// GraphEditor: a model's graph written anew, operator by operator, with others between them.
#pragma once

#include <string>
#include <vector>

#include "estimator/model/model_graph.hpp"

namespace stowage {

class GraphEditor {
 public:
  /// The model without its operators; its tensors keep their numbers.
  explicit GraphEditor(const ModelGraph& model) : model_(model) { model_.operators.clear(); }

  /// The next operator of the order, as it is.
  void keep(const Operator& op) { model_.operators.push_back(op); }

  /// A new operator behind the last one, with an output for each type.
  std::vector<TensorId> add(std::string name, const OperatorRow& row, Attributes attributes,
                            std::vector<TensorId> inputs, std::vector<TensorType> outputs,
                            const SourceSpan& span);

  [[nodiscard]] const TensorType& type(TensorId id) const { return model_.tensor(id).type; }
  void set_type(TensorId id, TensorType type) { model_.tensors[id.index()].type = std::move(type); }
  void set_output(TensorId id) { model_.output = id; }

  /// The graph, each tensor with its producer.
  [[nodiscard]] ModelGraph finish() &&;

 private:
  ModelGraph model_;
};

}  // namespace stowage
