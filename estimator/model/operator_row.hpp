// The operator catalogue: one row an operator, and all that the program knows about it.
//
// Rows are data and plain functions: help, docs, the reader's checks and the tests iterate over
// them. To add an operator, write its row in catalogue/ and list it in catalogue.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/attributes.hpp"
#include "estimator/base/kernel_set.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/base/shape.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

class OperatorLowering;  // step/operator_lowering.hpp

/// A parameter or buffer that an operator owns. Floating-point ones get the model's own format
/// (float_type of its precision) whatever the rule says here.
struct ParameterSpec {
  std::string_view name;  ///< "weight", "bias", "running_mean"
  Shape shape;            ///< constant
  DataType type = DataType::float32;
  bool is_buffer = false;
};

/// What a shape rule says.
struct Inference {
  std::vector<TensorType> outputs;
  std::vector<ParameterSpec> parameters;  ///< parameters first, then buffers
  Affine flops = 0;                       ///< of the forward pass; a multiply-add counts two
};

/// A shape rule's refusal: a sentence, and the attribute or input that it is about.
struct InferenceError {
  std::string message;              ///< "kernel 7 is larger than the padded input 5"
  std::string_view attribute = {};  ///< "" : the layer as a whole
  int input = -1;                   ///< the input whose shape does not suit, or -1
  std::string hint = {};
};

/// Sees the inputs' formats as autocast leaves them.
using InferRule = tl::expected<Inference, InferenceError> (*)(const Attributes& attributes,
                                                              std::span<const TensorType> inputs);
using LowerRule = void (*)(OperatorLowering& lowering);

/// How one kernel set runs the operator: forward and backward (null: no gradient passes).
struct LoweringRules {
  LowerRule forward = nullptr;
  LowerRule backward = nullptr;
  /// Autocast does not convert its inputs: the rule does, as where PyTorch runs the operator as
  /// several of different classes.
  bool casts_its_inputs = false;
};

/// The rules of each kernel set: a set runs the operator by its own, or, where it has none, by
/// those of `stowage`. So a set that is added names the operators that it runs otherwise. A rule
/// belongs to its set and does not ask for it; what two rules share is a function that both call.
struct RulesBySet {
  LoweringRules stowage;
  LoweringRules pytorch = {};
};

struct OperatorRow {
  std::string_view name;  ///< as written in a description: "conv2d"
  std::string_view doc;   ///< one line
  std::vector<AttributeSpec> attributes;
  int min_inputs = 1;
  int max_inputs = 1;  ///< -1: any number
  InferRule infer = nullptr;
  RulesBySet lowering = {};
  bool is_loss = false;
  /// What autocast does to its inputs and parameters: the rules below see the formats after it.
  AutocastClass autocast = AutocastClass::as_is;
  /// Where the class depends on the attributes, this says it.
  AutocastClass (*autocast_by_attributes)(const Attributes& attributes) = nullptr;
  /// Its floating-point outputs follow from no floating-point input (an embedding, a constant), so
  /// that they have the model's own format whatever the shape rule says.
  bool makes_floats = false;
  /// Its inputs meet its parameters in element-by-element arithmetic, which autocast leaves alone:
  /// the floating-point outputs are promoted with the parameters' format.
  bool promotes_with_parameters = false;
};

/// All rows, in the order of the documentation.
[[nodiscard]] std::span<const OperatorRow> operator_catalogue();
[[nodiscard]] const OperatorRow* find_operator(std::string_view name);  ///< null: unknown
/// The sum of several losses (`loss:` with a list), which no description names.
[[nodiscard]] const OperatorRow& total_loss_row();

[[nodiscard]] const LoweringRules& rules_of(const OperatorRow& row, KernelSet set);
[[nodiscard]] AutocastClass autocast_class(const OperatorRow& row, const Attributes& attributes);

}  // namespace stowage
