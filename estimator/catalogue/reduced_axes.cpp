#include "estimator/catalogue/reduced_axes.hpp"

#include <fmt/format.h>

#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

tl::expected<std::vector<bool>, InferenceError> reduced_axes(const Attributes& attributes,
                                                             const Shape& x) {
  const auto& axes = attributes.integers("axes");
  std::vector<bool> reduced(x.size(), axes.empty());
  for (const std::int64_t written : axes) {
    const auto axis = resolve_axis(written, x.size());
    if (!axis) {
      return refuse(fmt::format("axis {} is outside its input's shape {}", written, to_string(x)),
                    "axes", 0);
    }
    if (reduced[*axis]) return refuse(fmt::format("axis {} is named twice", written), "axes");
    reduced[*axis] = true;
  }
  return reduced;
}

Shape reduced_shape(const Shape& x, const std::vector<bool>& reduced, bool keep) {
  Shape y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!reduced[i]) y.push_back(x[i]);
    if (reduced[i] && keep) y.push_back(1);
  }
  return y;
}

tl::expected<Inference, InferenceError> infer_over_axes(const Attributes& attributes,
                                                        std::span<const TensorType> inputs,
                                                        std::int64_t flops) {
  const TensorType& x = inputs[0];
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  const auto reduced = reduced_axes(attributes, x.shape);
  if (!reduced) return tl::unexpected(reduced.error());
  Inference result;
  result.outputs = {{reduced_shape(x.shape, *reduced, attributes.boolean("keep")), x.type}};
  result.flops = element_count(x.shape) * Affine(flops);
  return result;
}

std::vector<std::int64_t> reduced_axis_list(const OperatorLowering& lowering) {
  const auto reduced = *reduced_axes(lowering.attributes(), lowering.input().shape);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) axes.push_back(static_cast<std::int64_t>(i));
  }
  return axes;
}

TensorView with_reduced_axes(const OperatorLowering& lowering, TensorView view) {
  if (lowering.attributes().boolean("keep")) return view;
  const auto reduced = *reduced_axes(lowering.attributes(), lowering.input().shape);
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i]) continue;
    const Affine stride = i < view.shape.size() ? view.shape[i] * view.strides[i] : Affine(1);
    view.shape.insert(view.shape.begin() + static_cast<std::ptrdiff_t>(i), 1);
    view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(i), stride);
    view.is_view = true;
  }
  return view;
}

std::vector<AttributeSpec> reduced_axes_attributes() {
  return {{.name = "axes",
           .type = AttributeType::integers,
           .doc = "which; negative counts from the last; none: all",
           .default_value = std::vector<std::int64_t>{}},
          {.name = "keep",
           .type = AttributeType::boolean,
           .doc = "keep them as axes of one",
           .default_value = false}};
}

}  // namespace stowage
