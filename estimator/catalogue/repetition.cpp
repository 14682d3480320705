// tile (Tensor.repeat) and repeat_interleave: copies of a tensor along its axes. Nothing is saved;
// the gradient is summed over the copies.
//
// PyTorch's gradient of repeat() sums new leading axes one by one, then all copies at once
// (repeat_backward in FunctionsManual.cpp). Our executor sees both operators as one kernel that
// repeats along axes of one.
#include <fmt/format.h>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/axis_attribute.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

/// The shapes of x and of its copies with an axis for the copies of each axis.
struct RepeatedShapes {
  Shape once, copies;
};

tl::expected<Inference, InferenceError> infer_tile(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& repeats = attributes.integers("repeats");
  if (repeats.size() < x.shape.size()) {
    return refuse(fmt::format("{} repeats are fewer than its input {} has axes", repeats.size(),
                              to_string(x.shape)),
                  "repeats", 0);
  }
  const std::size_t more = repeats.size() - x.shape.size();
  Shape y(more, Affine(1));
  y.insert(y.end(), x.shape.begin(), x.shape.end());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * Affine(repeats[i]);
  Inference result;
  result.outputs = {{std::move(y), x.type}};
  return result;
}

RepeatedShapes tile_shapes(const OperatorLowering& lowering) {
  const Shape& x = lowering.input().shape;
  const auto& repeats = lowering.attributes().integers("repeats");
  const std::size_t more = repeats.size() - x.size();
  RepeatedShapes shapes;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const Affine size = i < more ? Affine(1) : x[i - more];
    shapes.once.insert(shapes.once.end(), {Affine(1), size});
    shapes.copies.insert(shapes.copies.end(), {Affine(repeats[i]), size});
  }
  return shapes;
}

tl::expected<Inference, InferenceError> infer_interleave(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto axis = axis_attribute(attributes, x.shape);
  if (!axis) return tl::unexpected(axis.error());
  Shape y = x.shape;
  y[*axis] = y[*axis] * Affine(attributes.integer("repeats"));
  Inference result;
  result.outputs = {{std::move(y), x.type}};
  return result;
}

RepeatedShapes interleave_shapes(const OperatorLowering& lowering) {
  RepeatedShapes shapes{lowering.input().shape, lowering.input().shape};
  const std::size_t axis = *axis_attribute(lowering.attributes(), shapes.once);
  const auto behind = static_cast<std::ptrdiff_t>(axis) + 1;
  shapes.once.insert(shapes.once.begin() + behind, 1);
  shapes.copies.insert(shapes.copies.begin() + behind, lowering.attributes().integer("repeats"));
  return shapes;
}

/// The contiguous `view` reshaped.
TensorView seen_as(const TensorView& view, const Shape& shape) {
  TensorView seen = contiguous_view(view.storage, shape, view.type);
  seen.is_view = view.is_view;
  return seen;
}

using ShapesOf = RepeatedShapes (*)(const OperatorLowering& lowering);

template <ShapesOf shapes_of>
void forward_repetition(OperatorLowering& lowering) {
  const RepeatedShapes shapes = shapes_of(lowering);
  const TensorView x = lowering.contiguous_within(lowering.input(), "input.contiguous");
  const TensorView y = lowering.new_output();
  Attributes attributes;
  attributes.set("factor", 1.0);
  lowering.emit(Kernel::expand, "forward", {seen_as(x, shapes.once)}, {seen_as(y, shapes.copies)},
                {.attributes = std::move(attributes)});
}

template <ShapesOf shapes_of>
void backward_repetition(OperatorLowering& lowering) {
  const RepeatedShapes shapes = shapes_of(lowering);
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::sum_to_shape, "backward", {seen_as(dy, shapes.copies)},
                {seen_as(dx, shapes.once)}, {.flops = element_count(dy.shape)});
  lowering.give_input_gradient(0, dx);
}

// The gradient that arrived lives until its sums are made.
void backward_tile_pytorch(OperatorLowering& lowering) {
  const std::size_t more =
      lowering.attributes().integers("repeats").size() - lowering.input().shape.size();
  TensorView sum = lowering.output_gradient();
  const StorageId arrived = sum.storage;
  for (std::size_t i = 0; i < more; ++i) {
    const TensorView read = sum;
    sum = lowering.new_tensor(fmt::format("grad_sum{}", i),
                              Shape(read.shape.begin() + 1, read.shape.end()), read.type,
                              StorageClass::activation_gradient);
    lowering.emit(Kernel::sum_to_shape, fmt::format("backward.sum{}", i), {read}, {sum},
                  {.holds = {arrived}, .flops = element_count(read.shape)});
  }
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::sum_to_shape, "backward", {sum}, {dx},
                {.holds = {arrived}, .flops = element_count(sum.shape)});
  lowering.give_input_gradient(0, dx);
}

// In PyTorch repeat_interleave flattens a copy of the expanded tensor, so that its result is a
// view; so is the gradient that comes out, of a sum along an axis that is then taken away. The
// gradient that arrives is seen with that axis, however it lies: one axis can always be seen as
// two.

void forward_interleave_pytorch(OperatorLowering& lowering) {
  forward_repetition<interleave_shapes>(lowering);
  TensorView y = lowering.output();
  y.is_view = true;
  lowering.set_output(0, y);
}

void backward_interleave_pytorch(OperatorLowering& lowering) {
  const RepeatedShapes shapes = interleave_shapes(lowering);
  const std::size_t axis = *axis_attribute(lowering.attributes(), lowering.input().shape);
  TensorView dy = lowering.output_gradient();
  const Affine stride = dy.strides[axis];
  dy.shape = shapes.copies;
  dy.strides[axis] = stride * Affine(lowering.attributes().integer("repeats"));
  dy.strides.insert(dy.strides.begin() + static_cast<std::ptrdiff_t>(axis) + 1, stride);
  TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::sum_to_shape, "backward", {dy}, {seen_as(dx, shapes.once)},
                {.flops = element_count(dy.shape)});
  dx.is_view = true;
  lowering.give_input_gradient(0, dx);
}

AttributeSpec repeats_attribute(AttributeType type, std::string_view doc) {
  return {.name = "repeats", .type = type, .doc = doc, .minimum = 1, .maximum = 1 << 20};
}

}  // namespace

OperatorRow rows::tile() {
  return {
      .name = "tile",
      .doc = "a tensor laid beside itself along its axes, and along new leading ones",
      .attributes = {repeats_attribute(AttributeType::integers,
                                       "how often along each axis, new leading ones first")},
      .infer = infer_tile,
      .lowering = {.stowage = {forward_repetition<tile_shapes>, backward_repetition<tile_shapes>},
                   .pytorch = {forward_repetition<tile_shapes>, backward_tile_pytorch}}};
}

OperatorRow rows::repeat_interleave() {
  return {.name = "repeat_interleave",
          .doc = "each element of an axis several times in a row",
          .attributes = {repeats_attribute(AttributeType::integer, "how often"),
                         axis_spec({}, "which; negative counts from the last")},
          .infer = infer_interleave,
          .lowering = {.stowage = {forward_repetition<interleave_shapes>,
                                   backward_repetition<interleave_shapes>},
                       .pytorch = {forward_interleave_pytorch, backward_interleave_pytorch}}};
}

}  // namespace stowage
