// ModelDescription: a description as written, with the place of every part; names resolved within
// their scope, expressions parsed. What depends on no block's argument is evaluated already, since
// the model's own arguments are known when the text is read.
//
// A scope is a list of layers: the model's own or a block's. What is wrong with a part has been
// reported when it gets here, and is marked: `broken` layers give outputs of unknown shape, and
// `unknown` references stay silent.
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
  int argument = -1;  ///< of the block
  WrittenValue value;
};

/// A use of a layer's output, or of an input of the scope.
struct Reference {
  enum class Kind { input, layer, unknown };
  Kind kind = Kind::unknown;
  int index = -1;        ///< the input's or the layer's number in the scope; input -1: the only one
  int instance = -1;     ///< of a repeated layer; -1: the last
  int output = -1;       ///< -1: the only one
  bool implied = false;  ///< no `from` was written
  bool all = false;  ///< "input.*", "layer.*": every input of the block, every instance's output
  Mark mark;
};

struct Tie {
  std::string parameter;  ///< of this layer: "weight"
  std::string target;     ///< "wte.weight"
  Mark mark;
  Mark target_mark;
};

/// What a parameter is called in reports, in place of "layer.weight".
struct ParameterName {
  std::string parameter;  ///< of this layer: "weight"
  std::string name;       ///< "layer1.0.conv1.weight"
  Mark mark;
};

/// One entry of `layers:` (or `loss:`): an operator or a block.
struct LayerEntry {
  std::string name;  ///< within its scope; given or made: "conv2d_1"
  Mark mark;         ///< of the operator's or block's name
  const OperatorRow* row = nullptr;
  int block = -1;
  bool broken = false;
  std::vector<Reference> from;
  std::optional<WrittenValue> repeat, when, frozen, checkpoint;
  bool dense = false;            ///< of `repeat`: each takes the outputs of all before it as well
  std::string module;            ///< of the scope's `modules:`, "rest.mlp"; "": it lies in none
  bool called_each = false;      ///< of `repeat`: no module calls them all, see modules_reader.hpp
  std::optional<DataType> type;  ///< `precision:`: of its parameters, or of those within it
  std::vector<Tie> ties;
  std::vector<ParameterName> parameter_names;
  Attributes constants;                    ///< operator: complete, in the row's order
  std::vector<AttributeSetting> settings;  ///< operator: those that depend on the instance
  std::vector<std::pair<std::string_view, Mark>> attribute_marks;  ///< operator: as written
  std::vector<ArgumentSetting> arguments;                          ///< block
};

struct Scope {
  std::vector<LayerEntry> layers;
  std::vector<Reference> outputs;
  int loss = -1;  ///< the model's own scope: the first loss's number in `layers`; the rest follow
};

struct ArgumentDeclaration {
  std::string name;
  Mark mark;
  std::optional<WrittenValue> default_value;  ///< none: required
  bool takes_words = false;                   ///< its default is a word
};

struct Block {
  std::string name;
  Mark mark;
  std::vector<ArgumentDeclaration> arguments;
  std::vector<std::string> argument_names;
  Scope scope;
  bool recursive = false;  ///< reported; not to be expanded
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
};

}  // namespace stowage
