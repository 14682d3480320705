// GraphEdit: a pass over a model's graph that inserts operators, and replaces or removes existing
// ones.
//
// The pass goes over the model's operators in execution order: `take` copies one into the new
// graph, `add` appends a new one after it, and `redirect` makes all operators that are taken later
// read another tensor.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

class GraphEdit {
 public:
  explicit GraphEdit(ModelGraph model);

  [[nodiscard]] std::size_t size() const { return old_.size(); }
  [[nodiscard]] ModelGraph& model() { return model_; }
  /// Appends operator `i` of the original model to the new graph, with its inputs redirected. The
  /// reference is to the operator in the new graph.
  Operator& take(std::size_t i);

  struct InsertedOperator {
    TensorId output;                ///< the first
    std::vector<TensorId> outputs;  ///< all
    std::vector<ParameterId> parameters;
  };
  /// Appends a new operator with new parameters. Its source place and checkpointed region are those
  /// of `beside`. `type`: the format of its floating-point parameters; buffers keep the shape
  /// rule's format.
  /// Errors: what the row's rule refuses, at the place of `beside`.
  [[nodiscard]] Result<InsertedOperator> add(std::string name, const OperatorRow& row,
                                             Attributes attributes, std::vector<TensorId> inputs,
                                             DataType type, const Operator& beside);
  /// Appends a new operator that reads existing parameters: a second reader of a layer's weights.
  [[nodiscard]] Result<InsertedOperator> add_reader(std::string name, const OperatorRow& row,
                                                    Attributes attributes,
                                                    std::vector<TensorId> inputs,
                                                    std::vector<ParameterId> parameters,
                                                    DataType type, const Operator& beside);
  /// Leaves operator `i` out of the new graph. Precondition: no operator that is taken reads its
  /// outputs.
  void drop(std::size_t i);
  /// Operators that are taken after this call, and the model's output, read `to` instead of `from`.
  /// Precondition: nothing was redirected to `from`.
  void redirect(TensorId from, TensorId to);

  [[nodiscard]] ModelGraph finished() &&;

 private:
  Result<InsertedOperator> put(Operator op, const Inference& inference, DataType type);

  ModelGraph model_;
  std::vector<Operator> old_;
  std::vector<TensorId> replacement_;  // by TensorId; grows with the tensors
};

/// Adds the parameters that a shape rule lists, named "owner.parameter", to the model. `type`: the
/// format of floating-point ones; buffers keep the rule's format.
[[nodiscard]] std::vector<ParameterId> add_parameters(ModelGraph& model, const std::string& owner,
                                                      const Inference& inference, DataType type,
                                                      bool trainable);
/// The result of the row's shape rule for these inputs, with the formats that autocast gives them.
[[nodiscard]] Result<Inference> inferred(const ModelGraph& model, const OperatorRow& row,
                                         const Attributes& attributes,
                                         const std::vector<TensorId>& inputs,
                                         const std::string& name, const SourceSpan& span);

}  // namespace stowage
