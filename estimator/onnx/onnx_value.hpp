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
  /// All numbers; nullopt: unknown, or one depends on the batch.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> numbers() const;
};

[[nodiscard]] OnnxValue constant_value(TensorType type, std::vector<Affine> integers = {},
                                       std::vector<double> reals = {});
/// nullopt: the catalogue does not have the type (strings, complex numbers and others).
[[nodiscard]] std::optional<DataType> data_type_of(int onnx_type);

/// Two shapes broadcast as in NumPy; nullopt: they do not match.
[[nodiscard]] std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// The output of a node whose inputs depend on no activation: with its numbers, or with its type
/// only. nullopt: there is no rule for the operator. Throws NotAffine and ArithmeticOverflow.
[[nodiscard]] std::optional<OnnxValue> fold(const OnnxNode& node,
                                            const std::vector<const OnnxValue*>& inputs,
                                            std::size_t output);
/// The type of a node's first output by ONNX's rule. nullopt: there is no rule here.
[[nodiscard]] std::optional<TensorType> infer_type(const OnnxNode& node,
                                                   const std::vector<const OnnxValue*>& inputs);

/// Whether the operator selects elements by their positions: Slice, Gather, Transpose, Concat.
[[nodiscard]] bool selects_by_position(std::string_view op);
/// The output of such a node for constant inputs. nullopt: its size is unknown.
[[nodiscard]] std::optional<OnnxValue> fold_selection(const OnnxNode& node,
                                                      const std::vector<const OnnxValue*>& inputs);
/// The number of elements, if it is small enough to keep their numbers; nullopt: it is too large or
/// depends on the batch.
[[nodiscard]] std::optional<std::size_t> small_count(const Shape& shape);
/// Whether all its numbers are kept.
[[nodiscard]] bool is_known(const OnnxValue& value);

/// A node's axes, from its attribute or, in later opsets, its second input.
[[nodiscard]] std::optional<std::vector<std::int64_t>> axes_of(
    const OnnxNode& node, const std::vector<const OnnxValue*>& inputs, std::size_t input = 1);
/// The axis counted from the front; nullopt: out of range.
[[nodiscard]] std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank);
/// The output shape of a Reshape: 0 copies a dimension, -1 is the remainder. nullopt: it cannot be
/// computed.
[[nodiscard]] std::optional<Shape> reshaped(const Shape& from, const std::vector<Affine>& wanted,
                                            bool allow_zero);

}  // namespace stowage
