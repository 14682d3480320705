// What goes along one axis: max and min with their places, argmax and argmin, topk, cumsum.
//
// Autograd keeps the places of extrema alone, and puts the gradient there into zeros
// (value_selecting_reduction_backward in FunctionsManual.cpp; in place, which tests/reference sees
// once step_trace.py repairs what fake tensors do otherwise).
#include <fmt/format.h>

#include <array>

#include "estimator/catalogue/axis_attribute.hpp"
#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

Shape without_chosen_axis(Shape shape, std::size_t axis, bool keep) {
  shape[axis] = 1;
  if (!keep) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape;
}

tl::expected<Inference, InferenceError> infer_place(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  const auto axis = axis_attribute(attributes, x.shape);
  if (!axis) return tl::unexpected(axis.error());
  Inference result;
  result.outputs = {
      {without_chosen_axis(x.shape, *axis, attributes.boolean("keep")), DataType::int64}};
  result.flops = element_count(x.shape);
  return result;
}

tl::expected<Inference, InferenceError> infer_value_and_place(const Attributes& attributes,
                                                              std::span<const TensorType> inputs) {
  auto result = infer_place(attributes, inputs);
  if (result)
    result->outputs.insert(result->outputs.begin(), {result->outputs[0].shape, inputs[0].type});
  return result;
}

Attributes extreme_attributes(const OperatorLowering& lowering) {
  Attributes attributes = axis_from_zero(lowering);
  const std::string_view row = lowering.op().row->name;
  attributes.set("operation", std::string(row == "max" || row == "argmax" ? "maximum" : "minimum"));
  return attributes;
}

void forward_place(OperatorLowering& lowering) {
  lowering.emit(
      Kernel::extreme_place, "forward", {lowering.input()}, {lowering.new_output()},
      {.attributes = extreme_attributes(lowering), .flops = element_count(lowering.input().shape)});
}

void forward_value_and_place(OperatorLowering& lowering) {
  const TensorView values = lowering.new_output(0), indices = lowering.new_output(1);
  lowering.emit(
      Kernel::extreme_place, "forward", {lowering.input()}, {indices, values},
      {.attributes = extreme_attributes(lowering), .flops = element_count(lowering.input().shape)});
  lowering.save("indices", indices);
}

/// `view` with the axis back as one of ones, where it is not kept.
TensorView with_chosen_axis(const OperatorLowering& lowering, TensorView view) {
  const Shape& x = lowering.input().shape;
  if (view.shape.size() == x.size()) return view;
  const std::size_t axis = *axis_attribute(lowering.attributes(), x);
  const Affine stride =
      axis < view.shape.size() ? view.shape[axis] * view.strides[axis] : Affine(1);
  view.shape.insert(view.shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  view.strides.insert(view.strides.begin() + static_cast<std::ptrdiff_t>(axis), stride);
  view.is_view = true;
  return view;
}

void backward_chosen(OperatorLowering& lowering) {
  if (!lowering.has_output_gradient(0)) return;
  const TensorView dx = lowering.new_input_gradient();
  const TensorView dy = lowering.output_gradient(0);
  lowering.emit(
      Kernel::gather_backward, "backward",
      {with_chosen_axis(lowering, lowering.saved("indices")), with_chosen_axis(lowering, dy)}, {dx},
      {.attributes = axis_from_zero(lowering), .flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

tl::expected<Inference, InferenceError> infer_topk(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  const auto axis = axis_attribute(attributes, x.shape);
  if (!axis) return tl::unexpected(axis.error());
  const std::int64_t count = attributes.integer("count");
  if (auto error = want_constant(x.shape[*axis], "searched axis")) return tl::unexpected(*error);
  if (count > x.shape[*axis].constant) {
    return refuse(
        fmt::format("count {} is more than axis {} of {} has", count, *axis, to_string(x.shape)),
        "count", 0);
  }
  Shape y = x.shape;
  y[*axis] = count;
  Inference result;
  result.outputs = {{y, x.type}, {y, DataType::int64}};
  result.flops = element_count(x.shape);
  return result;
}

void forward_topk(OperatorLowering& lowering) {
  const TensorView values = lowering.new_output(0), indices = lowering.new_output(1);
  lowering.emit(
      Kernel::top_places, "forward", {lowering.input()}, {values, indices},
      {.attributes = axis_from_zero(lowering), .flops = element_count(lowering.input().shape)});
  lowering.save("indices", indices);
}

tl::expected<Inference, InferenceError> infer_cumsum(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto axis = axis_attribute(attributes, x.shape);
  if (!axis) return tl::unexpected(axis.error());
  if (!is_floating_point(x.type) && x.type != DataType::int64) {
    return refuse(fmt::format("its input is {}", to_string(x.type)), {}, 0,
                  "`cast: {dtype: int64}` it first");
  }
  Inference result;
  result.outputs = {x};
  result.flops = element_count(x.shape);
  return result;
}

Attributes cumulation(const OperatorLowering& lowering, bool reverse) {
  Attributes attributes = axis_from_zero(lowering);
  attributes.set("reverse", reverse);
  return attributes;
}

void forward_cumsum(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  lowering.emit(
      Kernel::cumulate, "forward", {x}, {new_output_like(lowering, x)},
      {.attributes = cumulation(lowering, false), .flops = element_count(lowering.input().shape)});
}

void emit_cumsum_backward(OperatorLowering& lowering, const TensorView& dy, const TensorView& dx,
                          std::vector<StorageId> temporaries) {
  lowering.emit(Kernel::cumulate, "backward", {dy}, {dx},
                {.attributes = cumulation(lowering, true),
                 .temporaries = std::move(temporaries),
                 .flops = element_count(lowering.input().shape)});
  lowering.give_input_gradient(0, dx);
}

void backward_cumsum_stowage(OperatorLowering& lowering) {
  emit_cumsum_backward(lowering, lowering.output_gradient(), lowering.new_input_gradient(), {});
}

// cumsum_backward: in the input's format, flipped, summed, flipped again, in one expression.
void backward_cumsum_pytorch(OperatorLowering& lowering) {
  const TensorView arrived = lowering.output_gradient();
  const TensorView dy = lowering.cast(arrived, lowering.input().type, "grad.cast");
  const std::size_t axis = *axis_attribute(lowering.attributes(), dy.shape);
  if (dy.shape[axis] == Affine(1)) return lowering.give_input_gradient(0, dy);
  const TensorView dx = new_input_gradient_like(lowering, dy);
  emit_cumsum_backward(lowering, dy, dx,
                       {lowering.new_temporary("flipped", byte_count(dx)),
                        lowering.new_temporary("summed", byte_count(dx))});
  lowering.also_hold(std::array{arrived.storage});
}

std::vector<AttributeSpec> place_attributes() {
  return {axis_spec({}, "which; negative counts from the last"),
          {.name = "keep",
           .type = AttributeType::boolean,
           .doc = "keep it as an axis of one",
           .default_value = false}};
}

OperatorRow extremum_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .attributes = place_attributes(),
          .infer = infer_value_and_place,
          .lowering = {.stowage = {forward_value_and_place, backward_chosen}}};
}

OperatorRow place_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .attributes = place_attributes(),
          .infer = infer_place,
          .lowering = {.stowage = {forward_place, nullptr}}};
}

}  // namespace

OperatorRow rows::max() {
  return extremum_row("max", "largest elements along an axis (0), and where they stand (1)");
}
OperatorRow rows::min() {
  return extremum_row("min", "smallest elements along an axis (0), and where they stand (1)");
}
OperatorRow rows::argmax() {
  return place_row("argmax", "where the largest elements along an axis stand, as int64");
}
OperatorRow rows::argmin() {
  return place_row("argmin", "where the smallest elements along an axis stand, as int64");
}

OperatorRow rows::topk() {
  return {.name = "topk",
          .doc = "the largest elements along an axis in order (0), and where they stand (1)",
          .attributes =
              {{.name = "count", .type = AttributeType::integer, .doc = "how many", .minimum = 1},
               axis_spec(-1, "which; negative counts from the last"),
               {.name = "largest",
                .type = AttributeType::boolean,
                .doc = "false: the smallest",
                .default_value = true}},
          .infer = infer_topk,
          .lowering = {.stowage = {forward_topk, backward_chosen}}};
}

OperatorRow rows::cumsum() {
  OperatorRow row{.name = "cumsum",
                  .doc = "sums along an axis up to each place",
                  .attributes = {axis_spec({}, "which; negative counts from the last")},
                  .infer = infer_cumsum,
                  .lowering = {.stowage = {forward_cumsum, backward_cumsum_stowage},
                               .pytorch = {forward_cumsum, backward_cumsum_pytorch}},
                  .autocast = AutocastClass::float32};
  row.lowering.pytorch.casts_its_inputs = true;  // its kernel reads 16 bits and sums in float32
  return row;
}

}  // namespace stowage
