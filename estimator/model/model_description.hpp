// ModelDescription: a description as written, with the place of every part. Names are resolved
// within their scope and expressions are parsed. Expressions that use no block argument are
// evaluated, since the model's own arguments are known when the text is read.
//
// A scope is a list of layers: the model's own or a block's. Mistakes have been reported and are
// marked: a `broken` layer has outputs of unknown shape, and an `unknown` reference causes no
// further message.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/model/expression.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/model/written_value.hpp"

namespace stowage {

struct AttributeSetting {
  const AttributeSpec* spec = nullptr;
  WrittenValue value;
};

struct ArgumentSetting {
  int argument = -1;  ///< number of the block's argument
  WrittenValue value;
};

/// A reference to a layer's output or to an input of the scope.
struct Reference {
  enum class Kind { input, layer, unknown };
  Kind kind = Kind::unknown;
  int index = -1;        ///< number of the input or layer in the scope; input -1: the only one
  int instance = -1;     ///< instance of a repeated layer; -1: the last
  int output = -1;       ///< -1: the only one
  bool implied = false;  ///< no `from` was written: the previous layer
  bool all = false;  ///< "input.*", "layer.*": all inputs of the block, or outputs of all instances
  Mark mark;
};

/// An entry of `tie:`: this layer's parameter is another layer's.
struct Tie {
  std::string parameter;  ///< of this layer: "weight"
  std::string target;     ///< "wte.weight"
  Mark mark;
  Mark target_mark;
};

/// An entry of `parameter_names:`: a parameter's name in reports, instead of "layer.weight".
struct ParameterName {
  std::string parameter;  ///< of this layer: "weight"
  std::string name;       ///< "layer1.0.conv1.weight"
  Mark mark;
};

/// One entry of `layers:` (or `loss:`): an operator or a block.
struct LayerEntry {
  std::string name;  ///< within its scope; given, or generated: "conv2d_1"
  Mark mark;         ///< of the operator's or block's name
  const OperatorRow* row = nullptr;
  int block = -1;
  bool broken = false;
  std::vector<Reference> from;
  std::optional<WrittenValue> repeat, when, frozen, checkpoint;
  bool dense = false;  ///< of `repeat`: each instance also reads the outputs of all earlier ones
  std::string module;  ///< entry of the scope's `modules:` that contains it, "rest.mlp"; "": none
  /// Of `repeat`: called one by one in a loop (modules_reader.hpp).
  bool called_one_by_one = false;
  /// `precision:`: format of its parameters, or of those of the layers within it.
  std::optional<DataType> type;
  std::vector<Tie> ties;
  std::vector<ParameterName> parameter_names;
  Attributes constants;                    ///< operator: all attributes, in the row's order
  std::vector<AttributeSetting> settings;  ///< operator: attributes that depend on the instance
  /// Operator: places of the written ones.
  std::vector<std::pair<std::string_view, Mark>> attribute_marks;
  std::vector<ArgumentSetting> arguments;  ///< block
};

struct Scope {
  std::vector<LayerEntry> layers;
  std::vector<Reference> outputs;
  int loss = -1;  ///< model scope: number of the first loss in `layers`; the others follow
};

struct ArgumentDeclaration {
  std::string name;
  Mark mark;
  std::optional<WrittenValue> default_value;  ///< none: required
  bool takes_words = false;                   ///< its default value is a word
};

struct Block {
  std::string name;
  Mark mark;
  std::vector<ArgumentDeclaration> arguments;
  std::vector<std::string> argument_names;
  Scope scope;
  bool recursive = false;  ///< it contains itself, which was reported; not expanded
};

struct InputDeclaration {
  std::string name;
  Mark mark;
  TensorType type;
  bool broken = false;
};

/// `train:`.
struct TrainSettings {
  OptimizerSettings optimizer;
  bool loss_in_model = false;
  Precision precision = Precision::fp32;
  StepSettings step;
  int accumulation = 1;
  FineTuning fine_tuning;
};

struct ModelDescription {
  std::string name;
  std::string source;
  std::vector<std::string> value_names;  ///< the model's arguments, then its symbols
  std::vector<Value> values;
  std::vector<InputDeclaration> inputs;
  std::vector<Block> blocks;
  Scope scope;
  TrainSettings train;
  std::vector<DevicePin> pins;
  std::int64_t default_seq = 0;
  AttentionForm attention = AttentionForm::as_described;
};

}  // namespace stowage
