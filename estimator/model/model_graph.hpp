// ModelGraph: a network as written: operators, the tensors between them, parameters and buffers.
//
// Operators are in the order of the description, which is a topological order and the order in
// which the runtime calls them. The tables are plain vectors; model_topology.hpp makes a graph of
// them where one is needed. Sizes are affine in the batch (base/affine.hpp). Immutable once built;
// safe to share between threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/data_type.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/base/id.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/base/shape.hpp"
#include "estimator/model/attention_form.hpp"
#include "estimator/model/device_pin.hpp"
#include "estimator/model/fine_tuning.hpp"
#include "estimator/model/step_settings.hpp"
#include "estimator/optimizer/optimizer_settings.hpp"

namespace stowage {

struct OperatorRow;

struct TensorType {
  Shape shape;
  DataType type = DataType::float32;
  bool operator==(const TensorType&) const = default;
};
/// The type of an element-by-element result by type promotion, in which a scalar does not widen a
/// tensor.
[[nodiscard]] DataType promoted(const TensorType& a, const TensorType& b);

/// An activation: a model input or one output of an operator.
struct ModelTensor {
  std::string name;  ///< "image", "conv1", "qkv.0"
  TensorType type;
  OperatorId producer;  ///< none: a model input
  int output_index = 0;
};

struct Parameter {
  std::string name;  ///< "conv1.weight"; a tied parameter has its first owner's name
  TensorType type;   ///< shape is constant
  bool trainable = true;
  bool is_buffer = false;   ///< not trained, such as running statistics
  std::int64_t values = 0;  ///< quantised weight: number of values it encodes; 0: its elements
};

struct Operator {
  std::string name;  ///< unique: "layer1.0.conv1"
  std::string path;  ///< the name with the modules that `modules:` adds; "": the name itself
  const OperatorRow* row = nullptr;
  Attributes attributes;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  /// In the row's order, then buffers; tied parameters repeat an id.
  std::vector<ParameterId> parameters;
  SourceSpan span;
  int region = -1;            ///< its checkpointed region, from 0; -1: none
  bool keeps_result = false;  ///< in a region: its result is kept, and it does not run again
};

struct ModelGraph {
  std::string name;
  std::string source;  ///< whose implementation it describes: "torchvision resnet18"
  std::vector<ModelTensor> tensors;
  std::vector<Parameter> parameters;  ///< trainable ones, frozen ones and buffers
  std::vector<Operator> operators;    ///< execution order; the loss, if any, is the last
  std::vector<TensorId> inputs;
  TensorId output;                        ///< what the model returns (the loss's first input)
  TensorId loss;                          ///< none: inference only
  bool loss_in_model = false;             ///< the module computes the loss, as in transformers
  bool releases_output = false;           ///< the script drops the output once it has the loss
  Precision precision = Precision::fp32;  ///< with which the types were inferred
  OptimizerSettings optimizer;            ///< of `train:`
  StepSettings step;                      ///< of `train:`
  int accumulation = 1;                   ///< of `train:`: micro-batches before an update
  std::int64_t default_seq = 0;           ///< 0: the model has no symbol `seq`
  AttentionForm attention = AttentionForm::as_described;  ///< asked for by the argument `attention`
  FineTuning fine_tuning;            ///< from `train:`, overridden by ModelOptions
  std::vector<DevicePin> pins;       ///< of `pins:`
  std::vector<Diagnostic> warnings;  ///< such as unused layers

  [[nodiscard]] const ModelTensor& tensor(TensorId id) const { return tensors[id.index()]; }
  [[nodiscard]] const Parameter& parameter(ParameterId id) const { return parameters[id.index()]; }
  [[nodiscard]] const Operator& op(OperatorId id) const { return operators[id.index()]; }
};

/// Elements of all parameters without buffers; a tied one counts once.
[[nodiscard]] std::int64_t parameter_count(const ModelGraph& model);
[[nodiscard]] std::int64_t trainable_parameter_count(const ModelGraph& model);

}  // namespace stowage
