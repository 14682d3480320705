// GraphEdit: operators put in among those of a model's graph, or in the place of one.
//
// A pass goes over the model's operators in their order, hands each to `take`, and puts others
// behind it with `add`; who reads a tensor later in the pass may be given another (`redirect`).
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
  /// Number `i` of the model as it was, with its inputs as they are now; taken() is that operator
  /// from here on, and stands in the new graph.
  Operator& take(std::size_t i);

  struct Made {
    TensorId output;                ///< the first
    std::vector<TensorId> outputs;  ///< all
    std::vector<ParameterId> parameters;
  };
  /// A new operator behind all so far, with parameters of its own; place and region are those of
  /// `beside`. `type`: of its floating-point parameters; buffers keep the rule's format.
  /// Errors: what the row's rule refuses, at the place of `beside`.
  [[nodiscard]] Result<Made> add(std::string name, const OperatorRow& row, Attributes attributes,
                                 std::vector<TensorId> inputs, DataType type,
                                 const Operator& beside);
  /// The same, with parameters that are there already: another reader of a layer's weights.
  [[nodiscard]] Result<Made> add_reader(std::string name, const OperatorRow& row,
                                        Attributes attributes, std::vector<TensorId> inputs,
                                        std::vector<ParameterId> parameters, DataType type,
                                        const Operator& beside);
  /// Number `i` is not to be in the new graph, and nothing that is taken reads what it makes.
  void drop(std::size_t i);
  /// Operators that are taken from here on, and the model's output, read `to` for `from`.
  /// Precondition: nothing was redirected to `from`.
  void redirect(TensorId from, TensorId to);

  [[nodiscard]] ModelGraph finished() &&;

 private:
  Result<Made> put(Operator op, const Inference& inference, DataType type);

  ModelGraph model_;
  std::vector<Operator> old_;
  std::vector<TensorId> instead_;  // by TensorId; grows with the tensors
};

/// Adds the parameters that a rule makes; buffers keep the rule's format.
[[nodiscard]] std::vector<ParameterId> add_parameters(ModelGraph& model, const std::string& owner,
                                                      const Inference& inference, DataType type,
                                                      bool trainable);
/// What the row's rule says of these inputs, as autocast hands them over.
[[nodiscard]] Result<Inference> inferred(const ModelGraph& model, const OperatorRow& row,
                                         const Attributes& attributes,
                                         const std::vector<TensorId>& inputs,
                                         const std::string& name, const SourceSpan& span);

}  // namespace stowage
