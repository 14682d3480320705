// OnnxValue: the value of a name in an ONNX graph that is being translated, and constant folding.
//
// Most nodes of an exported graph compute sizes. They are folded, with the batch as a symbol
// (base/affine.hpp), so that only nodes that depend on the inputs become layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/import/layer_list.hpp"
#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

struct OnnxValue {
  enum class Kind : std::uint8_t {
    absent,
    activation,  ///< an output of a layer, or an input of the model
    parameter,   ///< a floating-point initialiser, or a view of one
    constant,    ///< any other value that does not depend on the inputs
  };
  Kind kind = Kind::absent;
  TensorType type;
  LayerOutput layer;            ///< activation
  int tensor = -1;              ///< parameter: its number among the graph's initialisers
  bool turned = false;          ///< parameter: its last two axes are swapped
  bool is_causal_mask = false;  ///< constant: a causal mask, with any two values
  /// Row-major; empty: not known (large tables, masks).
  std::vector<Affine> integers = {};
  std::vector<double> reals = {};

  [[nodiscard]] bool is_activation() const { return kind == Kind::activation; }
  [[nodiscard]] bool is_parameter() const { return kind == Kind::parameter; }
  [[nodiscard]] bool is_constant() const { return kind == Kind::constant; }
  [[nodiscard]] bool is_absent() const { return kind == Kind::absent; }
  [[nodiscard]] std::size_t rank() const { return type.shape.size(); }
  /// The number in a tensor of one element.
  [[nodiscard]] std::optional<double> scalar() const;
  /// As above, for a whole number in the 64-bit range.
  [[nodiscard]] std::optional<std::int64_t> integer() const;
  /// All numbers; nullopt: unknown, or one depends on the batch.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> numbers() const;
};

[[nodiscard]] OnnxValue constant_value(TensorType type, std::vector<Affine> integers = {},
                                       std::vector<double> reals = {});
/// nullopt: the catalogue does not have the type (strings, complex numbers and others).
[[nodiscard]] std::optional<DataType> data_type_of(int onnx_type);

/// Two shapes broadcast as in NumPy; nullopt: they do not match.
[[nodiscard]] std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// How many numbers constant folding may still compute, of most_folded_numbers in a file: a bound
/// on its time and its memory.
class FoldingBudget {
 public:
  /// Takes `count` numbers. False: too few are left; the values are then not computed.
  [[nodiscard]] bool take(std::size_t count);

 private:
  std::size_t left_ = most_folded_numbers;
};

/// The outputs of a node whose inputs depend on no activation: with their numbers, or with their
/// types only. Empty: there is no rule for the operator. Throws NotAffine and ArithmeticOverflow.
[[nodiscard]] std::vector<OnnxValue> fold(const OnnxNode& node,
                                          const std::vector<const OnnxValue*>& inputs,
                                          FoldingBudget& budget);
/// The type of a node's first output by ONNX's rule. nullopt: there is no rule here.
[[nodiscard]] std::optional<TensorType> infer_type(const OnnxNode& node,
                                                   const std::vector<const OnnxValue*>& inputs);

/// Whether the operator selects elements by their positions: Slice, Gather, Transpose, Concat.
[[nodiscard]] bool selects_by_position(std::string_view op);
/// The output of such a node for constant inputs. nullopt: its size is unknown.
[[nodiscard]] std::optional<OnnxValue> fold_selection(const OnnxNode& node,
                                                      const std::vector<const OnnxValue*>& inputs,
                                                      FoldingBudget& budget);
/// The number of elements, if it is small enough to keep their numbers; nullopt: it is too large or
/// depends on the batch, or an extent is negative.
[[nodiscard]] std::optional<std::size_t> small_count(const Shape& shape);
/// Whether all its numbers are kept.
[[nodiscard]] bool is_known(const OnnxValue& value);
/// Forgets numbers that are not as many as the shape has elements.
void drop_excess_numbers(OnnxValue& value);

/// The output shape of a Reshape: 0 copies a dimension, -1 is the remainder. nullopt: it cannot be
/// computed.
[[nodiscard]] std::optional<Shape> reshaped(const Shape& from, const std::vector<Affine>& wanted,
                                            bool allow_zero);

}  // namespace stowage
