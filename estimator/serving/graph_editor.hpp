// GraphEditor: a model's graph written anew, operator by operator, with others between them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/model/model_graph.hpp"

namespace stowage {

class GraphEditor {
 public:
  /// The model without its operators; its tensors keep their numbers.
  explicit GraphEditor(const ModelGraph& model);

  /// The next operator of the order, as it is. One that is written without a path takes that of the
  /// model's own operator that it is called after: "attention" of "attention.cache".
  void keep(Operator op);

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
  [[nodiscard]] std::string path_of(std::string_view name) const;

  ModelGraph model_;
  std::map<std::string, std::string, std::less<>> paths_;  // by name, where there is one
};

}  // namespace stowage
