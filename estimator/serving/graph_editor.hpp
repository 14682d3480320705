// GraphEditor: builds a changed copy of a model's graph, operator by operator, with new operators
// between the existing ones.
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
  /// Starts from the model without its operators; tensors keep their numbers.
  explicit GraphEditor(const ModelGraph& model);

  /// Appends an operator. If it has no path, it gets that of the model's operator after which it is
  /// named: that of "attention" for "attention.cache".
  void keep(Operator op);

  /// Appends a new operator with one output for each type.
  std::vector<TensorId> add(std::string name, const OperatorRow& row, Attributes attributes,
                            std::vector<TensorId> inputs, std::vector<TensorType> outputs,
                            const SourceSpan& span);

  [[nodiscard]] const TensorType& type(TensorId id) const { return model_.tensor(id).type; }
  void set_type(TensorId id, TensorType type) { model_.tensors[id.index()].type = std::move(type); }
  void set_output(TensorId id) { model_.output = id; }

  /// The finished graph, with the producer of each tensor set.
  [[nodiscard]] ModelGraph finish() &&;

 private:
  [[nodiscard]] std::string path_of(std::string_view name) const;

  ModelGraph model_;
  std::map<std::string, std::string, std::less<>> paths_;  // by name; only of operators with a path
};

}  // namespace stowage
