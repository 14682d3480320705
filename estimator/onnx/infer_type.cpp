// Types of outputs by ONNX' own rules, for what the catalogue has no row for and for constants.
#include <algorithm>
#include <array>
#include <string_view>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/onnx_value.hpp"

namespace stowage {

namespace {

using Inputs = std::vector<const OnnxValue*>;
using OptionalType = std::optional<TensorType>;

constexpr std::array<std::string_view, 11> truth_operators{
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or",
    "Xor",   "Not",     "IsNaN",          "IsInf"};
constexpr std::array<std::string_view, 44> elementwise_operators{
    "Add",     "Sub",        "Mul",     "Div",  "Mod",   "Pow",  "Min",      "Max",     "Mean",
    "Sum",     "PRelu",      "Abs",     "Neg",  "Sign",  "Sqrt", "Exp",      "Log",     "Erf",
    "Sin",     "Cos",        "Tan",     "Asin", "Acos",  "Atan", "Sinh",     "Cosh",    "Asinh",
    "Acosh",   "Atanh",      "Floor",   "Ceil", "Round", "Clip", "Identity", "Trilu",   "CumSum",
    "Softmax", "Reciprocal", "Sigmoid", "Tanh", "Relu",  "Celu", "Selu",     "Softsign"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

OptionalType broadcast_type(const Inputs& inputs, std::size_t first, DataType type) {
  Shape shape = inputs[first]->type.shape;
  for (std::size_t i = first + 1; i < inputs.size(); ++i) {
    if (inputs[i]->is_absent()) continue;
    const auto wider = broadcast_shape(shape, inputs[i]->type.shape);
    if (!wider) return std::nullopt;
    shape = *wider;
  }
  return TensorType{shape, type};
}

OptionalType reduced(const OnnxNode& node, const Inputs& inputs) {
  const auto axes = axes_of(node, inputs);
  if (!axes) return std::nullopt;
  const bool keeps = node.integer("keepdims", 1) != 0;
  TensorType type = inputs[0]->type;
  if (axes->empty() && node.integer("noop_with_empty_axes", 0) != 0) return type;
  const auto named = marked_axes(*axes, type.shape.size());
  if (!named) return std::nullopt;
  Shape shape;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const bool is_gone = axes->empty() || (*named)[i];
    if (!is_gone) shape.push_back(type.shape[i]);
    if (is_gone && keeps) shape.push_back(1);
  }
  return TensorType{shape, type.type};
}

OptionalType with_new_axes(const OnnxNode& node, const Inputs& inputs) {
  const auto axes = axes_of(node, inputs);
  if (!axes || axes->empty()) return std::nullopt;
  const std::size_t rank = inputs[0]->rank() + axes->size();
  const auto fresh = marked_axes(*axes, rank);
  if (!fresh) return std::nullopt;
  Shape shape;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    shape.push_back((*fresh)[i] ? Affine(1) : inputs[0]->type.shape[next++]);
  }
  return TensorType{shape, inputs[0]->type.type};
}

OptionalType without_axes(const OnnxNode& node, const Inputs& inputs) {
  const auto axes = axes_of(node, inputs);
  if (!axes) return std::nullopt;
  const Shape& from = inputs[0]->type.shape;
  const auto named = marked_axes(*axes, from.size());
  if (!named) return std::nullopt;
  Shape shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool is_one = from[i] == Affine(1);
    if ((*named)[i] && !is_one) return std::nullopt;
    const bool is_gone = (*named)[i] || (axes->empty() && is_one);
    if (!is_gone) shape.push_back(from[i]);
  }
  return TensorType{shape, inputs[0]->type.type};
}

OptionalType gathered(const OnnxNode& node, const Inputs& inputs) {
  if (inputs.size() < 2) return std::nullopt;
  const Shape& from = inputs[0]->type.shape;
  const auto axis = axis_in(node.integer("axis", 0), from.size());
  if (!axis) return std::nullopt;
  Shape shape(from.begin(), from.begin() + *axis);
  for (const Affine& extent : inputs[1]->type.shape) shape.push_back(extent);
  for (std::size_t i = *axis + 1; i < from.size(); ++i) shape.push_back(from[i]);
  return TensorType{shape, inputs[0]->type.type};
}

// For indices [..., k]: the shape that is left of x after k axes are indexed.
OptionalType gathered_nd(const OnnxNode& node, const Inputs& inputs) {
  if (inputs.size() < 2 || inputs[1]->rank() < 1) return std::nullopt;
  const Shape& from = inputs[0]->type.shape;
  const Shape& indices = inputs[1]->type.shape;
  const auto rank = static_cast<std::int64_t>(from.size());
  const std::int64_t outer = node.integer("batch_dims", 0);
  const Affine axes = indices.back();
  if (outer < 0 || outer >= rank || !axes.is_constant() || axes.constant < 0 ||
      axes.constant > rank - outer) {
    return std::nullopt;
  }
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), from.begin() + outer + axes.constant, from.end());
  return TensorType{shape, inputs[0]->type.type};
}

OptionalType joined(const OnnxNode& node, const Inputs& inputs) {
  TensorType type = inputs[0]->type;
  const auto axis = axis_in(node.integer("axis", 0), type.shape.size());
  if (!axis) return std::nullopt;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Shape& other = inputs[i]->type.shape;
    if (other.size() != type.shape.size()) return std::nullopt;
    for (std::size_t k = 0; k < other.size(); ++k) {
      const bool differs = other[k] != type.shape[k];
      const bool is_fixed = other[k].is_constant() && type.shape[k].is_constant();
      if (k != *axis && differs && is_fixed) return std::nullopt;
    }
    type.shape[*axis] = type.shape[*axis] + other[*axis];
  }
  return type;
}

OptionalType transposed(const OnnxNode& node, const Inputs& inputs) {
  const Shape& from = inputs[0]->type.shape;
  const auto order = permutation_of(node, from.size());
  if (!order) return std::nullopt;
  Shape shape;
  for (const std::size_t axis : *order) shape.push_back(from[axis]);
  return TensorType{shape, inputs[0]->type.type};
}

OptionalType expanded(const Inputs& inputs) {
  if (inputs.size() < 2) return std::nullopt;
  const auto& wanted = inputs[1]->integers;
  if (wanted.size() > most_onnx_axes) return std::nullopt;
  const auto shape = broadcast_shape(inputs[0]->type.shape, Shape(wanted.begin(), wanted.end()));
  if (!shape || (wanted.empty() && !inputs[1]->numbers())) return std::nullopt;
  return TensorType{*shape, inputs[0]->type.type};
}

OptionalType reshaped_type(const OnnxNode& node, const Inputs& inputs) {
  if (inputs.size() < 2) return std::nullopt;
  if (inputs[1]->integers.empty() && !inputs[1]->numbers()) return std::nullopt;
  const auto shape =
      reshaped(inputs[0]->type.shape, inputs[1]->integers, node.integer("allowzero", 0) != 0);
  if (!shape) return std::nullopt;
  return TensorType{*shape, inputs[0]->type.type};
}

OptionalType filled(const OnnxNode& node, const Inputs& inputs) {
  if (inputs[0]->integers.empty() && !inputs[0]->numbers()) return std::nullopt;
  if (inputs[0]->integers.size() > most_onnx_axes) return std::nullopt;
  DataType type = DataType::float32;
  if (const OnnxAttribute* value = node.find("value"); value != nullptr && value->tensor) {
    const auto known = data_type_of(value->tensor->type);
    if (!known) return std::nullopt;
    type = *known;
  }
  return TensorType{Shape(inputs[0]->integers.begin(), inputs[0]->integers.end()), type};
}

OptionalType tiled(const Inputs& inputs) {
  if (inputs.size() < 2 || inputs[1]->integers.size() != inputs[0]->rank()) return std::nullopt;
  TensorType type = inputs[0]->type;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    type.shape[i] = type.shape[i] * inputs[1]->integers[i];
  }
  return type;
}

OptionalType cast_type(const OnnxNode& node, const Inputs& inputs) {
  const auto type = data_type_of(static_cast<int>(node.integer("to", 0)));
  if (!type) return std::nullopt;
  return TensorType{inputs[0]->type.shape, *type};
}

OptionalType type_by_rule(const OnnxNode& node, const Inputs& inputs) {
  const std::string& op = node.op;
  if (inputs.empty() || inputs[0]->is_absent()) return std::nullopt;
  if (is_one_of(op, truth_operators)) return broadcast_type(inputs, 0, DataType::boolean);
  if (op == "Trilu" || op == "CumSum" || op == "Clip" || op.starts_with("Random") ||
      op.starts_with("Scatter")) {
    return inputs[0]->type;
  }
  if (is_one_of(op, elementwise_operators)) {
    return broadcast_type(inputs, 0, inputs[0]->type.type);
  }
  if (op == "Where" && inputs.size() == 3) {
    const auto shape = broadcast_type(inputs, 0, inputs[1]->type.type);
    return shape;
  }
  if (op.starts_with("Reduce")) return reduced(node, inputs);
  if (op == "Unsqueeze") return with_new_axes(node, inputs);
  if (op == "Squeeze") return without_axes(node, inputs);
  if (op == "Gather") return gathered(node, inputs);
  if (op == "GatherElements" && inputs.size() == 2) {
    return TensorType{inputs[1]->type.shape, inputs[0]->type.type};
  }
  if (op == "GatherND") return gathered_nd(node, inputs);
  if (op == "Concat") return joined(node, inputs);
  if (op == "Transpose") return transposed(node, inputs);
  if (op == "Expand") return expanded(inputs);
  if (op == "Reshape") return reshaped_type(node, inputs);
  if (op == "ConstantOfShape") return filled(node, inputs);
  if (op == "Tile") return tiled(inputs);
  if (op == "Cast") return cast_type(node, inputs);
  if (op == "CastLike" && inputs.size() == 2) {
    return TensorType{inputs[0]->type.shape, inputs[1]->type.type};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TensorType> infer_type(const OnnxNode& node, const Inputs& inputs) {
  auto type = type_by_rule(node, inputs);
  if (!type || type->shape.size() > most_onnx_axes) return std::nullopt;
  const bool is_negative = std::ranges::any_of(type->shape, [](const Affine& extent) {
    return extent.slope < 0 || (extent.is_constant() && extent.constant < 0);
  });
  if (is_negative) return std::nullopt;
  return type;
}

}  // namespace stowage
