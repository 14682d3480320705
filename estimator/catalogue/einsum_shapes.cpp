#include "estimator/catalogue/einsum_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

Shape label_shape(std::string_view labels, const LabelSizes& sizes) {
  Shape shape;
  for (const char label : labels) shape.push_back(sizes.at(label));
  return shape;
}

std::vector<std::size_t> ranks_of(std::span<const Shape> shapes) {
  std::vector<std::size_t> ranks(shapes.size());
  std::transform(shapes.begin(), shapes.end(), ranks.begin(),
                 [](const Shape& s) { return s.size(); });
  return ranks;
}

tl::expected<LabelSizes, InferenceError> label_sizes(const EinsumEquation& equation,
                                                     std::span<const Shape> shapes) {
  LabelSizes sizes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string& labels = equation.operands[i];
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      const Affine& size = shapes[i][axis];
      Affine& known = sizes.emplace(labels[axis], size).first->second;
      const Affine& before = shapes[i][labels.find(labels[axis])];  // of a diagonal
      if (known == Affine(1)) known = size;
      if (before == size && (known == size || size == Affine(1))) continue;
      return refuse(std::isdigit(static_cast<unsigned char>(labels[axis])) != 0
                        ? fmt::format("an axis of the ellipsis is {} and {}", known.to_string(),
                                      size.to_string())
                        : fmt::format("axis '{}' is {} and {}", labels[axis], known.to_string(),
                                      size.to_string()),
                    "equation", static_cast<int>(i));
    }
  }
  return sizes;
}

namespace {

/// Diagonals along the batch would have another length in each step.
std::optional<InferenceError> check_diagonals(const EinsumEquation& equation,
                                              const LabelSizes& sizes) {
  for (std::size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string& labels = equation.operands[i];
    for (const char label : labels) {
      if (std::count(labels.begin(), labels.end(), label) < 2) continue;
      if (auto error = want_constant(sizes.at(label), "axis of a diagonal", static_cast<int>(i))) {
        return error;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

tl::expected<Inference, InferenceError> infer_einsum(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  std::vector<Shape> shapes;
  shapes.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto error = want_floating(inputs[i], static_cast<int>(i))) return tl::unexpected(*error);
    shapes.push_back(inputs[i].shape);
  }
  const auto equation = read_equation(attributes.text("equation"), ranks_of(shapes));
  if (!equation) return refuse(equation.error(), "equation");
  const auto sizes = label_sizes(*equation, shapes);
  if (!sizes) return tl::unexpected(sizes.error());
  if (auto error = check_diagonals(*equation, *sizes)) return tl::unexpected(*error);
  const auto batched = std::count_if(sizes->begin(), sizes->end(),
                                     [](const auto& row) { return !row.second.is_constant(); });
  if (batched > 1) return refuse("more than one axis depends on the batch", "equation");
  TensorType y{label_shape(equation->result, *sizes), inputs[0].type};
  Inference result;
  for (const TensorType& input : inputs) y.type = promoted(y.type, input.type);
  for (const EinsumStep& step : einsum_steps(reduced_equation(*equation, shapes))) {
    result.flops = result.flops + element_count(label_shape(step.result, *sizes)) *
                                      element_count(label_shape(step.contracted, *sizes)) *
                                      Affine(2);
  }
  result.outputs = {std::move(y)};
  return result;
}

}  // namespace stowage
