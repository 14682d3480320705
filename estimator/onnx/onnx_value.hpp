// OnnxValue: what a name in an ONNX graph stands for while the graph is translated.
//
// Most nodes of an exported graph compute sizes. Those are folded here, with the batch as a symbol
// (base/affine.hpp), so that only what depends on the inputs becomes a layer.
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
    parameter,   ///< an initialiser of real numbers, or a view of one
    constant,    ///< anything else that does not depend on the inputs
  };
  Kind kind = Kind::absent;
  TensorType type;
  LayerOutput layer;         ///< activation
  int tensor = -1;           ///< parameter: its number among the graph's initialisers
  bool turned = false;       ///< parameter: its last two axes are exchanged
  bool is_triangle = false;  ///< constant: a causal mask, whatever it holds on either side
  /// Row-major; empty where they are not known (large tables, masks).
  std::vector<Affine> integers = {};
  std::vector<double> reals = {};

  [[nodiscard]] bool is_activation() const { return kind == Kind::activation; }
  [[nodiscard]] bool is_parameter() const { return kind == Kind::parameter; }
  [[nodiscard]] bool is_constant() const { return kind == Kind::constant; }
  [[nodiscard]] bool is_absent() const { return kind == Kind::absent; }
  [[nodiscard]] std::size_t rank() const { return type.shape.size(); }
  /// The number that a tensor of one element is.
  [[nodiscard]] std::optional<double> scalar() const;
  /// All numbers, where none depends on the batch.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> numbers() const;
};

[[nodiscard]] OnnxValue constant_value(TensorType type, std::vector<Affine> integers = {},
                                       std::vector<double> reals = {});
/// nullopt: strings, complex numbers and other formats that the catalogue lacks.
[[nodiscard]] std::optional<DataType> data_type_of(int onnx_type);

/// Both shapes broadcast, as NumPy does; nullopt: they do not suit.
[[nodiscard]] std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// What a node gives whose inputs depend on no activation: folded, or of known size alone. nullopt:
/// nothing is known of such an operator. Throws NotAffine and ArithmeticOverflow.
[[nodiscard]] std::optional<OnnxValue> fold(const OnnxNode& node,
                                            const std::vector<const OnnxValue*>& inputs,
                                            std::size_t output);
/// The type of a node's first output by the operator's own rule. nullopt: no rule here.
[[nodiscard]] std::optional<TensorType> infer_type(const OnnxNode& node,
                                                   const std::vector<const OnnxValue*>& inputs);

/// Slice, Gather, Transpose, Concat: nodes that choose elements by their places.
[[nodiscard]] bool is_placing(std::string_view op);
/// What such a node gives of constants. nullopt: its size does not follow.
[[nodiscard]] std::optional<OnnxValue> fold_placing(const OnnxNode& node,
                                                    const std::vector<const OnnxValue*>& inputs);
/// How many elements, where their numbers may be kept; nullopt: too many, or the batch decides.
[[nodiscard]] std::optional<std::size_t> small_count(const Shape& shape);
/// Whether all its numbers are kept.
[[nodiscard]] bool is_known(const OnnxValue& value);

/// A node's axes, of its attribute or, in later opsets, of its second input.
[[nodiscard]] std::optional<std::vector<std::int64_t>> axes_of(
    const OnnxNode& node, const std::vector<const OnnxValue*>& inputs, std::size_t input = 1);
/// Axis counted from the front; nullopt: out of range.
[[nodiscard]] std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank);
/// The shape that a Reshape asks for: 0 copies, -1 is the rest. nullopt: it does not follow.
[[nodiscard]] std::optional<Shape> reshaped(const Shape& from, const std::vector<Affine>& wanted,
                                            bool allow_zero);

}  // namespace stowage
