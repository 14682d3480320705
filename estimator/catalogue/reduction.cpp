// mean and sum over axes, and expand, their inverse. Nothing is saved. In PyTorch an expanded
// tensor is a view whose repeated axes have a stride of 0; so is the gradient of a sum, while that
// of a mean is divided into a new tensor.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/catalogue/reduced_axes.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_sum(const Attributes& attributes,
                                                  std::span<const TensorType> inputs) {
  return infer_over_axes(attributes, inputs, 1);
}

tl::expected<Inference, InferenceError> infer_mean(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  auto result = infer_sum(attributes, inputs);
  if (!result) return result;
  const auto reduced = reduced_axes(attributes, inputs[0].shape);
  for (std::size_t i = 0; i < reduced->size(); ++i) {
    if (!(*reduced)[i]) continue;
    if (auto error = want_constant(inputs[0].shape[i], "averaged axis")) {
      return tl::unexpected(*error);
    }
  }
  return result;
}

bool is_mean_reduction(const OperatorLowering& lowering) {
  return lowering.op().row->name == "mean";
}

void forward_reduction(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  Attributes attributes;
  attributes.set("axes", reduced_axis_list(lowering));
  attributes.set("operation", std::string(is_mean_reduction(lowering) ? "mean" : "sum"));
  lowering.emit(Kernel::reduce, "forward", {x}, {lowering.new_output()},
                {.attributes = std::move(attributes), .flops = element_count(x.shape)});
}

// `view` repeated to `shape`, which has as many axes or more, without a copy.
TensorView broadcast_to(TensorView view, const Shape& shape) {
  const auto more = static_cast<std::ptrdiff_t>(shape.size() - view.shape.size());
  view.shape.insert(view.shape.begin(), static_cast<std::size_t>(more), 1);
  view.strides.insert(view.strides.begin(), static_cast<std::size_t>(more), 1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (view.shape[i] == shape[i]) continue;
    view.shape[i] = shape[i];
    view.strides[i] = 0;
  }
  view.is_view = true;
  return view;
}

/// Repeats `dy`, with the reduced axes inserted, into `dx`; for a mean divided by the number of
/// elements.
void emit_repetition(OperatorLowering& lowering, const TensorView& dy, const TensorView& dx) {
  const Shape& shape = lowering.input().shape;
  const auto reduced = *reduced_axes(lowering.attributes(), shape);
  double factor = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (reduced[i] && is_mean_reduction(lowering)) factor /= static_cast<double>(shape[i].constant);
  }
  Attributes attributes;
  attributes.set("factor", factor);
  lowering.emit(Kernel::expand, "backward", {dy}, {dx},
                {.attributes = std::move(attributes), .flops = element_count(shape)});
  lowering.give_input_gradient(0, dx);
}

void backward_reduction_stowage(OperatorLowering& lowering) {
  const TensorView dy = with_reduced_axes(lowering, lowering.output_gradient());
  emit_repetition(lowering, dy, lowering.new_input_gradient());
}

void backward_reduction_pytorch(OperatorLowering& lowering) {
  const Shape& shape = lowering.input().shape;
  const TensorView dy = with_reduced_axes(lowering, lowering.output_gradient());
  if (!is_mean_reduction(lowering)) return lowering.give_input_gradient(0, broadcast_to(dy, shape));
  TensorView dx = lowering.new_input_gradient();
  dx.strides = dense_strides(shape, broadcast_to(dy, shape).strides);
  emit_repetition(lowering, dy, dx);
}

tl::expected<Inference, InferenceError> infer_expand(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  Shape y = attributes.dimensions("shape");
  if (y.size() < x.shape.size()) {
    return refuse(
        fmt::format("{} has fewer axes than its input {}", to_string(y), to_string(x.shape)),
        "shape", 0);
  }
  const std::size_t more = y.size() - x.shape.size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const Affine old = i < more ? Affine(1) : x.shape[i - more];
    if (y[i] == Affine(-1) && i >= more) y[i] = old;
    if (y[i].constant < 0 || y[i].slope < 0 || y[i] == Affine(0)) {
      return refuse(fmt::format("{} is not a dimension", y[i].to_string()), "shape");
    }
    if (y[i] != old && old != Affine(1)) {
      return refuse(fmt::format("{} does not expand to {}", to_string(x.shape),
                                to_string(attributes.dimensions("shape"))),
                    "shape", 0);
    }
  }
  Inference result;
  result.outputs = {{y, x.type}};
  return result;
}

void forward_view(OperatorLowering& lowering) {
  lowering.set_output(0, broadcast_to(lowering.input(), lowering.output_type().shape));
}

void forward_expand_stowage(OperatorLowering& lowering) {
  if (lowering.input().shape == lowering.output_type().shape) {
    return forward_view(lowering);
  }
  Attributes attributes;
  attributes.set("factor", 1.0);
  lowering.emit(Kernel::expand, "forward", {lowering.input()}, {lowering.new_output()},
                {.attributes = std::move(attributes)});
}

void backward_expand(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  if (dy.shape == lowering.input().shape) return lowering.give_input_gradient(0, dy);
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::sum_to_shape, "backward", {dy}, {dx}, {.flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

OperatorRow reduction_row(std::string_view name, std::string_view doc, InferRule rule) {
  return {.name = name,
          .doc = doc,
          .attributes = reduced_axes_attributes(),
          .infer = rule,
          .lowering = {.stowage = {forward_reduction, backward_reduction_stowage},
                       .pytorch = {forward_reduction, backward_reduction_pytorch}}};
}

}  // namespace

OperatorRow rows::mean() { return reduction_row("mean", "average over axes", infer_mean); }

OperatorRow rows::sum() {
  OperatorRow result = reduction_row("sum", "sum over axes", infer_sum);
  result.autocast = AutocastClass::float32;
  // CUDA's kernel reads 16 bits and sums in float32 (ATen/native/ReduceOps.cpp).
  result.lowering.pytorch.casts_its_inputs = true;
  return result;
}

OperatorRow rows::expand() {
  return {.name = "expand",
          .doc = "repeat along axes of one, and along new leading axes",
          .attributes = {{.name = "shape",
                          .type = AttributeType::dimensions,
                          .doc = "the result's; -1: as the input's"}},
          .infer = infer_expand,
          .lowering = {.stowage = {forward_expand_stowage, backward_expand},
                       .pytorch = {forward_view, backward_expand}}};
}

}  // namespace stowage
