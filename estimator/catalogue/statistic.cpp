// amax and amin, var and std, and vector norms, over axes: one kernel each way in our executor, a
// formula of several in PyTorch's backward (FunctionsManual.cpp), whose tensors on the way are
// listed here as they are alive at its largest (measured by tests/reference/reduction_saved.py).
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/reduced_axes.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/attention.hpp"

namespace stowage {

namespace {

std::string_view row_name(const OperatorLowering& lowering) { return lowering.op().row->name; }

/// Whether backward needs the result besides the input.
bool saves_statistic(std::string_view row) { return row != "var"; }

Attributes statistic_attributes(const OperatorLowering& lowering) {
  const std::string_view row = row_name(lowering);
  Attributes attributes;
  attributes.set("axes", reduced_axis_list(lowering));
  attributes.set("operation", std::string(row == "amax"   ? "maximum"
                                          : row == "amin" ? "minimum"
                                          : row == "var"  ? "variance"
                                          : row == "std"  ? "deviation"
                                                          : "norm"));
  return attributes;
}

constexpr std::int64_t extremum_flops = 1, norm_flops = 3, variance_flops = 4;  // an element

Affine statistic_flops(const OperatorLowering& lowering) {
  const std::string_view row = row_name(lowering);
  const std::int64_t each = row == "norm"                  ? norm_flops
                            : row == "var" || row == "std" ? variance_flops
                                                           : extremum_flops;
  return element_count(lowering.input().shape) * Affine(each);
}

tl::expected<Inference, InferenceError> infer_extremum_over_axes(
    const Attributes& attributes, std::span<const TensorType> inputs) {
  return infer_over_axes(attributes, inputs, extremum_flops);
}

/// The kernels divide by how many elements there are.
tl::expected<Inference, InferenceError> infer_variance(const Attributes& attributes,
                                                       std::span<const TensorType> inputs) {
  auto result = infer_over_axes(attributes, inputs, variance_flops);
  if (!result) return result;
  const Shape& x = inputs[0].shape;
  const auto reduced = reduced_axes(attributes, x);
  Affine together = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if ((*reduced)[i]) together = together * x[i];
  }
  const double correction = attributes.real("correction");
  if (together.is_constant() && static_cast<double>(together.constant) <= correction) {
    return refuse(fmt::format("a variance of {} elements with a correction of {} divides by none",
                              together.constant, correction),
                  "correction", 0);
  }
  return result;
}

tl::expected<Inference, InferenceError> infer_norm(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  return infer_over_axes(attributes, inputs, norm_flops);
}

void forward_statistic(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::statistic_forward, "forward", {x}, {y},
                {.attributes = statistic_attributes(lowering), .flops = statistic_flops(lowering)});
  lowering.save("input", x);
  if (saves_statistic(row_name(lowering))) lowering.save("result", y);
}

/// Our executor's kernel is handed the result in any case.
void forward_statistic_stowage(OperatorLowering& lowering) {
  forward_statistic(lowering);
  if (!lowering.has_saved("result")) lowering.save("result", lowering.output());
}

void emit_statistic_backward(OperatorLowering& lowering, const TensorView& y, const TensorView& dx,
                             std::vector<StorageId> temporaries) {
  const TensorView dy = with_reduced_axes(lowering, lowering.output_gradient());
  lowering.emit(Kernel::statistic_backward, "backward",
                {lowering.saved("input"), with_reduced_axes(lowering, y), dy}, {dx},
                {.attributes = statistic_attributes(lowering),
                 .temporaries = std::move(temporaries),
                 .flops = statistic_flops(lowering)});
  lowering.give_input_gradient(0, dx);
}

/// A count of elements has no gradient.
bool has_slope(const OperatorLowering& lowering) {
  return row_name(lowering) != "norm" || lowering.attributes().real("p") != 0;
}

void backward_statistic_stowage(OperatorLowering& lowering) {
  if (!has_slope(lowering)) return;
  emit_statistic_backward(lowering, lowering.saved("result"), lowering.new_input_gradient(), {});
}

/// How many tensors a formula has alive at its peak: of the input's size in its format and in the
/// gradient's (under autocast a norm of 16 bits is float32), of the result's size, masks of one
/// byte per element, and counts of 8 bytes.
struct FormulaTensors {
  std::int64_t whole = 0, promoted = 0, whole_masks = 0, reduced = 0, reduced_masks = 0,
               reduced_counts = 0;
  bool mask_or_reduced = false;  ///< a mask of the whole, and later a tensor of the result's size
};

FormulaTensors norm_tensors(double p, bool widens) {
  if (p == 1) return {.whole = 1};
  if (p == 2) return {.promoted = 1, .reduced_masks = 1};
  if (std::isinf(p)) {
    return {.whole = 2, .promoted = 1, .whole_masks = 1, .reduced = 1, .reduced_counts = 1};
  }
  if (p < 1 && widens) return {.whole = 1, .promoted = 1, .reduced = 1};
  if (p < 1) return {.whole = 2, .mask_or_reduced = true};
  if (p < 2 && !widens) return {.whole = 2};
  return {.whole = 1, .reduced = 1};
}

FormulaTensors formula_tensors(const OperatorLowering& lowering, bool widens) {
  const std::string_view row = row_name(lowering);
  if (row == "norm") return norm_tensors(lowering.attributes().real("p"), widens);
  if (row == "var") return {.whole = 1, .reduced = 2};
  if (row == "std") return {.whole = 1, .reduced = 3};
  return {.whole_masks = 1, .reduced = 1, .reduced_counts = 1};
}

void backward_statistic_pytorch(OperatorLowering& lowering) {
  if (!has_slope(lowering)) return;
  const TensorView x = lowering.saved("input");
  const TensorView dy = lowering.output_gradient();
  const TensorView dx =
      ordered_like(lowering.new_tensor("grad_input0", x.shape, promoted(x.type, dy.type),
                                       StorageClass::activation_gradient),
                   x);
  const FormulaTensors tensors = formula_tensors(lowering, dx.type != x.type);
  const Affine whole = element_count(x.shape), reduced = element_count(dy.shape);
  std::vector<StorageId> temporaries;
  const auto add = [&](std::string_view name, std::int64_t count, const Affine& bytes) {
    if (count > 0) temporaries.push_back(lowering.new_temporary(name, bytes * Affine(count)));
  };
  add("factors", tensors.whole, byte_count(x));
  add("promoted", tensors.promoted, byte_count(dx));
  add("masks", tensors.whole_masks, whole);
  add("reduced", tensors.reduced, byte_count(dy));
  add("reduced_masks", tensors.reduced_masks, reduced);
  add("counts", tensors.reduced_counts, reduced * Affine(8));
  add("mask_or_reduced", tensors.mask_or_reduced ? 1 : 0, larger(whole, byte_count(dy)));
  emit_statistic_backward(lowering, lowering.has_saved("result") ? lowering.saved("result") : dy,
                          dx, std::move(temporaries));
}

OperatorRow statistic_row(std::string_view name, std::string_view doc, InferRule rule,
                          std::vector<AttributeSpec> more = {}) {
  std::vector<AttributeSpec> attributes = std::move(more);
  for (AttributeSpec& spec : reduced_axes_attributes()) attributes.push_back(std::move(spec));
  return {.name = name,
          .doc = doc,
          .attributes = std::move(attributes),
          .infer = rule,
          .lowering = {.stowage = {forward_statistic_stowage, backward_statistic_stowage},
                       .pytorch = {forward_statistic, backward_statistic_pytorch}}};
}

AttributeSpec correction_attribute() {
  return {.name = "correction",
          .type = AttributeType::real,
          .doc = "taken from the number of elements before dividing by it; 1: Bessel's",
          .default_value = 1.0,
          .minimum = 0};
}

}  // namespace

OperatorRow rows::amax() {
  return statistic_row("amax", "largest element over axes", infer_extremum_over_axes);
}
OperatorRow rows::amin() {
  return statistic_row("amin", "smallest element over axes", infer_extremum_over_axes);
}
OperatorRow rows::var() {
  return statistic_row("var", "variance over axes", infer_variance, {correction_attribute()});
}
OperatorRow rows::std_deviation() {
  return statistic_row("std", "standard deviation over axes", infer_variance,
                       {correction_attribute()});
}
OperatorRow rows::norm() {
  OperatorRow result =
      statistic_row("norm", "(sum |x|^p)^(1/p) over axes, a vector's norm", infer_norm,
                    {{.name = "p",
                      .type = AttributeType::real,
                      .doc = "the power; .inf and -.inf: the largest and the least absolute "
                             "value; 0: how many elements are not 0, without a gradient",
                      .default_value = 2.0,
                      .minimum = -std::numeric_limits<double>::infinity(),
                      .maximum = std::numeric_limits<double>::infinity()}});
  result.autocast = AutocastClass::float32;
  result.lowering.pytorch.casts_its_inputs = true;  // its kernel reads 16 bits and sums in float32
  return result;
}

}  // namespace stowage
