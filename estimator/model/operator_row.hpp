// OperatorRow: everything that the program knows about an operator. The catalogue has one row per
// operator.
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

/// A parameter or buffer of an operator. Floating-point ones get the model's format (float_type of
/// its precision), whatever type the rule gives.
struct ParameterSpec {
  std::string_view name;  ///< "weight", "bias", "running_mean"
  Shape shape;            ///< constant
  DataType type = DataType::float32;
  bool is_buffer = false;
};

/// The result of a shape rule.
struct Inference {
  std::vector<TensorType> outputs;
  std::vector<ParameterSpec> parameters;  ///< parameters first, then buffers
  Affine flops = 0;                       ///< of the forward pass; a multiply-add counts as 2
};

/// The error of a shape rule: a sentence, and the attribute or input that it is about.
struct InferenceError {
  std::string message;              ///< "kernel 7 is larger than the padded input 5"
  std::string_view attribute = {};  ///< "" : the layer as a whole
  int input = -1;                   ///< the input with the wrong shape, or -1
  std::string hint = {};
};

/// A shape rule. The inputs have the formats that autocast gives them.
using InferRule = tl::expected<Inference, InferenceError> (*)(const Attributes& attributes,
                                                              std::span<const TensorType> inputs);
using LowerRule = void (*)(OperatorLowering& lowering);

/// How one kernel set runs the operator: forward and backward (null: there is no gradient).
struct LoweringRules {
  LowerRule forward = nullptr;
  LowerRule backward = nullptr;
  /// The rule converts the inputs itself, instead of autocast, because PyTorch runs the operator as
  /// several operators of different autocast classes.
  bool casts_its_inputs = false;
};

/// The rules of each kernel set. A set without rules of its own for an operator uses those of
/// `stowage`, so a new set lists only the operators that it runs differently. A rule belongs to one
/// set and never tests which set it is; rules share code through functions.
struct RulesBySet {
  LoweringRules stowage;
  LoweringRules pytorch = {};
};

struct OperatorRow {
  std::string_view name;  ///< its name in a description: "conv2d"
  std::string_view doc;   ///< one line
  std::vector<AttributeSpec> attributes;
  int min_inputs = 1;
  int max_inputs = 1;  ///< -1: any number
  InferRule infer = nullptr;
  RulesBySet lowering = {};
  bool is_loss = false;
  /// A product with one weight, in whatever format that is stored: adapters go beside it, and a
  /// language model's last one makes its logits.
  bool is_linear = false;
  /// What autocast does to its inputs and parameters. The rules see the formats after it.
  AutocastClass autocast = AutocastClass::as_is;
  /// Gives the autocast class if it depends on the attributes; null: it is `autocast`.
  AutocastClass (*autocast_by_attributes)(const Attributes& attributes) = nullptr;
  /// Its floating-point outputs do not come from a floating-point input (an embedding, a constant),
  /// so they have the model's format, whatever the shape rule says.
  bool makes_floats = false;
  /// It combines inputs and parameters element by element, without autocast: the format of its
  /// floating-point outputs is promoted with that of the parameters.
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
