// slice (a part of an axis, perhaps every n-th place of it) and roll.
//
// In PyTorch a slice is a view, whose backward makes zeros of the input's size and copies into
// them. Our executor's slices have no step: an axis is padded to a multiple of the step, split in
// two, and the first place of each piece is taken.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

/// The elements `start`, `start + step`, ... of an axis, `count` in all.
struct Part {
  std::size_t axis = 0;
  std::int64_t start = 0, step = 1, count = 0, length = 0;  // length: of the axis
};

tl::expected<Part, InferenceError> part_of(const Attributes& attributes, const Shape& x) {
  const auto axis = resolve_axis(attributes.integer("axis"), x.size());
  if (!axis) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(x)),
                  "axis", 0);
  }
  if (auto error = want_constant(x[*axis], "sliced axis")) return tl::unexpected(*error);
  const std::int64_t length = x[*axis].constant;
  std::int64_t start = attributes.integer("start");
  if (start < 0) start = checked_add(start, length);
  if (start < 0 || start >= length) {
    return refuse(fmt::format("start {} is outside axis {} of {}", attributes.integer("start"),
                              *axis, to_string(x)),
                  "start", 0);
  }
  const std::int64_t wanted = attributes.integer("length");
  if (wanted > length - start) {
    return refuse(fmt::format("a length of {} from {} on is more than axis {} of {} has", wanted,
                              start, *axis, to_string(x)),
                  "length", 0);
  }
  const std::int64_t step = attributes.integer("step");
  const std::int64_t range = wanted == 0 ? length - start : wanted;
  return Part{*axis, start, step, (range - 1) / step + 1, length};
}

Part part_of(const OperatorLowering& lowering) {
  return *part_of(lowering.attributes(), lowering.input().shape);
}

tl::expected<Inference, InferenceError> infer_slice(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const auto part = part_of(attributes, inputs[0].shape);
  if (!part) return tl::unexpected(part.error());
  Shape y = inputs[0].shape;
  y[part->axis] = part->count;
  Inference result;
  result.outputs = {{y, inputs[0].type}};
  return result;
}

// The slice as a strided view.
TensorView view_of(const TensorView& x, const Part& part) {
  TensorView view = sliced(x, part.axis, part.start, part.count);
  view.strides[part.axis] = view.strides[part.axis] * Affine(part.step);
  return view;
}

Attributes slice_place(std::size_t axis, std::int64_t start) {
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(axis));
  attributes.set("start", start);
  return attributes;
}

// A view of a contiguous tensor in which an axis becomes [places, step].
TensorView in_pieces(const TensorView& view, std::size_t axis, std::int64_t step) {
  Shape shape = view.shape;
  shape[axis] = view.shape[axis].constant / step;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, step);
  return *reshaped(view, shape);
}

// Emits a kernel that changes the length of an axis.
TensorView resized(OperatorLowering& lowering, Kernel kernel, std::string_view name,
                   const TensorView& x, std::size_t axis, std::int64_t length,
                   Attributes attributes) {
  Shape shape = x.shape;
  shape[axis] = length;
  const TensorView y = lowering.new_tensor(name, shape, x.type, StorageClass::activation);
  lowering.emit(kernel, name, {x}, {y}, {.attributes = std::move(attributes)});
  return y;
}

// Adds `before` and `after` zeros along an axis.
TensorView zero_padded(OperatorLowering& lowering, std::string_view name, const TensorView& x,
                       std::size_t axis, std::int64_t before, std::int64_t after) {
  if (before == 0 && after == 0) return x;
  std::vector<std::int64_t> first(x.shape.size()), last(x.shape.size());
  first[axis] = before;
  last[axis] = after;
  Attributes attributes;
  attributes.set("before", std::move(first));
  attributes.set("after", std::move(last));
  attributes.set("mode", std::string("constant"));
  attributes.set("value", 0.0);
  return resized(lowering, Kernel::pad, name, x, axis, x.shape[axis].constant + before + after,
                 std::move(attributes));
}

void forward_slice_pytorch(OperatorLowering& lowering) {
  lowering.set_output(0, view_of(lowering.input(), part_of(lowering)));
}

void forward_slice_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const Part part = part_of(lowering);
  if (part.step == 1) {
    lowering.emit(Kernel::slice, "forward", {x}, {lowering.new_output()},
                  {.attributes = slice_place(part.axis, part.start)});
    return;
  }
  const std::int64_t spanned = checked_multiply(part.count, part.step);
  const std::int64_t there = std::min(spanned, part.length - part.start);
  TensorView range = resized(lowering, Kernel::slice, "range", x, part.axis, there,
                             slice_place(part.axis, part.start));
  range = zero_padded(lowering, "padded", range, part.axis, 0, spanned - there);
  TensorView y = lowering.new_output();
  y.shape.insert(y.shape.begin() + static_cast<std::ptrdiff_t>(part.axis) + 1, 1);
  y.strides = contiguous_strides(y.shape);
  lowering.emit(Kernel::slice, "forward", {in_pieces(range, part.axis, part.step)}, {y},
                {.attributes = slice_place(part.axis + 1, 0)});
}

// Zeros of the input's size, into which the gradient is copied.
void backward_slice_pytorch(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  Attributes zero;
  zero.set("value", 0.0);
  lowering.emit(Kernel::fill, "backward.zeros", {}, {dx}, {.attributes = zero});
  lowering.emit(Kernel::copy, "backward", {lowering.output_gradient()},
                {view_of(dx, part_of(lowering))});
  lowering.give_input_gradient(0, dx);
}

void backward_slice_stowage(OperatorLowering& lowering) {
  const Part part = part_of(lowering);
  TensorView gradient = lowering.output_gradient();
  if (part.step > 1) {
    Shape pieces = gradient.shape;
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(part.axis) + 1, 1);
    gradient = zero_padded(lowering, "backward.pieces", *reshaped(gradient, pieces), part.axis + 1,
                           0, part.step - 1);
    Shape joined = lowering.output_type().shape;
    joined[part.axis] = checked_multiply(part.count, part.step);
    gradient = *reshaped(gradient, joined);
    const std::int64_t there = std::min(joined[part.axis].constant, part.length - part.start);
    if (there < joined[part.axis].constant) {
      gradient = resized(lowering, Kernel::slice, "backward.range", gradient, part.axis, there,
                         slice_place(part.axis, 0));
    }
  }
  const std::int64_t after = part.length - part.start - gradient.shape[part.axis].constant;
  lowering.give_input_gradient(
      0, zero_padded(lowering, "grad_input", gradient, part.axis, part.start, after));
}

tl::expected<Inference, InferenceError> infer_roll(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& axes = attributes.integers("axes");
  if (axes.size() != attributes.integers("shifts").size()) {
    return refuse(
        fmt::format("{} shifts for {} axes", attributes.integers("shifts").size(), axes.size()),
        "shifts");
  }
  for (const std::int64_t axis : axes) {
    if (resolve_axis(axis, x.shape.size())) continue;
    return refuse(fmt::format("axis {} is outside its input's shape {}", axis, to_string(x.shape)),
                  "axes", 0);
  }
  Inference result;
  result.outputs = {x};
  return result;
}

void emit_roll(OperatorLowering& lowering, std::string_view name, const TensorView& x,
               const TensorView& y, std::int64_t sign, std::vector<StorageId> temporaries) {
  std::vector<std::int64_t> shifts = lowering.attributes().integers("shifts");
  std::vector<std::int64_t> axes = lowering.attributes().integers("axes");
  for (std::int64_t& shift : shifts) shift *= sign;
  for (std::int64_t& axis : axes) {
    axis = static_cast<std::int64_t>(*resolve_axis(axis, x.shape.size()));
  }
  Attributes attributes;
  attributes.set("shifts", std::move(shifts));
  attributes.set("axes", std::move(axes));
  lowering.emit(Kernel::roll, name, {x}, {y},
                {.attributes = std::move(attributes), .temporaries = std::move(temporaries)});
}

std::vector<StorageId> rolled_on_the_way(OperatorLowering& lowering, std::string_view name,
                                         const TensorView& y) {
  const Affine bytes = roll_scratch(lowering.attributes().integers("axes").size(), y);
  if (bytes == Affine(0)) return {};
  return {lowering.new_temporary(fmt::format("{}.rolled", name), bytes)};
}

std::vector<StorageId> nothing_on_the_way(OperatorLowering&, std::string_view, const TensorView&) {
  return {};
}

using OnTheWay = std::vector<StorageId> (*)(OperatorLowering& lowering, std::string_view name,
                                            const TensorView& y);

template <OnTheWay temporaries>
void forward_roll(OperatorLowering& lowering) {
  const TensorView y = lowering.new_output();
  emit_roll(lowering, "forward", lowering.input(), y, 1, temporaries(lowering, "forward", y));
}

template <OnTheWay temporaries>
void backward_roll(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  emit_roll(lowering, "backward", lowering.output_gradient(), dx, -1,
            temporaries(lowering, "backward", dx));
  lowering.give_input_gradient(0, dx);
}

}  // namespace

OperatorRow rows::slice() {
  return {.name = "slice",
          .doc = "a part of an axis",
          .attributes = {{.name = "axis",
                          .type = AttributeType::integer,
                          .doc = "which axis; negative counts from the last",
                          .default_value = std::int64_t{1}},
                         {.name = "start",
                          .type = AttributeType::integer,
                          .doc = "its first place; negative counts from the end",
                          .default_value = std::int64_t{0}},
                         {.name = "length",
                          .type = AttributeType::integer,
                          .doc = "how many places it spans; 0: to the end",
                          .default_value = std::int64_t{0},
                          .minimum = 0},
                         {.name = "step",
                          .type = AttributeType::integer,
                          .doc = "takes every n-th of them",
                          .default_value = std::int64_t{1},
                          .minimum = 1,
                          .maximum = 1 << 20}},
          .infer = infer_slice,
          .lowering = {.stowage = {forward_slice_stowage, backward_slice_stowage},
                       .pytorch = {forward_slice_pytorch, backward_slice_pytorch}}};
}

OperatorRow rows::roll() {
  return {
      .name = "roll",
      .doc = "shift along axes, what leaves at one end returning at the other",
      .attributes = {{.name = "shifts",
                      .type = AttributeType::integers,
                      .doc = "places to move, one an axis",
                      .minimum = -(1LL << 40),
                      .maximum = 1LL << 40},
                     {.name = "axes",
                      .type = AttributeType::integers,
                      .doc = "the axes; negative counts from the last"}},
      .infer = infer_roll,
      .lowering = {.stowage = {forward_roll<nothing_on_the_way>, backward_roll<nothing_on_the_way>},
                   .pytorch = {forward_roll<rolled_on_the_way>, backward_roll<rolled_on_the_way>}}};
}

}  // namespace stowage
