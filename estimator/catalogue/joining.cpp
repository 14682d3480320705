// concat, stack and split along an axis. In PyTorch the gradients of what was joined and the
// results of split are views; our executor, whose tensors are contiguous, copies. Of inputs in
// several formats the result has the promoted one; PyTorch's kernel converts as it copies.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

std::size_t joined_axis(const OperatorLowering& lowering, std::size_t rank) {
  return *resolve_axis(lowering.attributes().integer("axis"), rank);
}

Attributes joined_place(std::size_t axis, Affine start) {
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(axis));
  attributes.set("start", start.constant);
  return attributes;
}

tl::expected<Inference, InferenceError> infer_concat(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const auto axis = resolve_axis(attributes.integer("axis"), inputs[0].shape.size());
  if (!axis) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(inputs[0].shape)),
                  "axis", 0);
  }
  Shape y = inputs[0].shape;
  DataType type = inputs[0].type;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    Shape same = inputs[i].shape;
    if (same.size() == y.size()) same[*axis] = y[*axis];
    if (same != y) {
      return refuse(fmt::format("cannot concatenate {} and {} along axis {}",
                                to_string(inputs[0].shape), to_string(inputs[i].shape), *axis),
                    {}, static_cast<int>(i));
    }
    y[*axis] = y[*axis] + inputs[i].shape[*axis];
    type = promoted(type, inputs[i].type);
  }
  if (auto error = want_constant(y[*axis], "joined axis")) return tl::unexpected(*error);
  Inference result;
  result.outputs = {{y, type}};
  return result;
}

/// The joined tensors' layout, if they agree on one (ATen/native/TensorShape.cpp, cat).
TensorView joined_output(OperatorLowering& lowering, const std::vector<TensorView>& parts) {
  const bool channels_last = std::all_of(parts.begin(), parts.end(), suggests_channels_last);
  const TensorView y = laid_out(lowering.new_output(), channels_last);
  lowering.set_output(0, y);
  return y;
}

void forward_concat(OperatorLowering& lowering) {
  std::vector<TensorView> reads;
  for (int i = 0; i < lowering.input_count(); ++i) reads.push_back(lowering.input(i));
  const std::size_t axis = joined_axis(lowering, reads[0].shape.size());
  const TensorView y = joined_output(lowering, reads);
  lowering.emit(Kernel::concatenate, "forward", reads, {y}, {.attributes = joined_place(axis, 0)});
}

/// A part of an axis: its first place and how many there are.
struct Run {
  Affine start, length;
};

using GivePart = void (*)(OperatorLowering& lowering, int input, std::size_t axis, const Run& run);

template <GivePart give>
void backward_concat(OperatorLowering& lowering) {
  const std::size_t axis = joined_axis(lowering, lowering.output_gradient().shape.size());
  Run run;
  for (int i = 0; i < lowering.input_count(); ++i) {
    run.length = lowering.input(i).shape[axis];
    if (lowering.input_needs_gradient(i)) give(lowering, i, axis, run);
    run.start = run.start + run.length;
  }
}

void give_copied_part(OperatorLowering& lowering, int input, std::size_t axis, const Run& run) {
  const TensorView dy = lowering.output_gradient();
  const TensorView dx = lowering.new_input_gradient(input);
  lowering.emit(Kernel::slice, fmt::format("backward.{}", input), {dy}, {dx},
                {.attributes = joined_place(axis, run.start)});
  lowering.give_input_gradient(input, dx);
}

void give_view_of_part(OperatorLowering& lowering, int input, std::size_t axis, const Run& run) {
  lowering.give_input_gradient(input,
                               sliced(lowering.output_gradient(), axis, run.start, run.length));
}

tl::expected<Inference, InferenceError> infer_stack(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const std::int64_t written = attributes.integer("axis");
  const auto axis = resolve_axis(written, inputs[0].shape.size() + 1);
  if (!axis) {
    return refuse(fmt::format("axis {} is outside the result of stacking {}", written,
                              to_string(inputs[0].shape)),
                  "axis", 0);
  }
  DataType type = inputs[0].type;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].shape != inputs[0].shape) {
      return refuse(fmt::format("cannot stack {} and {}", to_string(inputs[0].shape),
                                to_string(inputs[i].shape)),
                    {}, static_cast<int>(i));
    }
    type = promoted(type, inputs[i].type);
  }
  Shape y = inputs[0].shape;
  y.insert(y.begin() + static_cast<std::ptrdiff_t>(*axis), std::ssize(inputs));
  Inference result;
  result.outputs = {{y, type}};
  return result;
}

TensorView with_axis(TensorView view, std::size_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const Affine stride =
      axis == view.shape.size() ? Affine(1) : view.shape[axis] * view.strides[axis];
  view.shape.insert(view.shape.begin() + at, 1);
  view.strides.insert(view.strides.begin() + at, stride);
  return view;
}

TensorView without_axis(TensorView view, std::size_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  view.shape.erase(view.shape.begin() + at);
  view.strides.erase(view.strides.begin() + at);
  view.is_view = true;
  return view;
}

void forward_stack(OperatorLowering& lowering) {
  const std::size_t axis = joined_axis(lowering, lowering.output_type().shape.size());
  std::vector<TensorView> reads;
  for (int i = 0; i < lowering.input_count(); ++i) {
    reads.push_back(with_axis(lowering.input(i), axis));
  }
  const TensorView y = joined_output(lowering, reads);
  lowering.emit(Kernel::concatenate, "forward", reads, {y}, {.attributes = joined_place(axis, 0)});
}

void backward_stack_stowage(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const std::size_t axis = joined_axis(lowering, dy.shape.size());
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    const TensorView dx = lowering.new_input_gradient(i);
    lowering.emit(Kernel::slice, fmt::format("backward.{}", i), {dy}, {with_axis(dx, axis)},
                  {.attributes = joined_place(axis, i)});
    lowering.give_input_gradient(i, dx);
  }
}

void backward_stack_pytorch(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const std::size_t axis = joined_axis(lowering, dy.shape.size());
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    lowering.give_input_gradient(i, without_axis(sliced(dy, axis, i, 1), axis));
  }
}

tl::expected<Inference, InferenceError> infer_split(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto axis = resolve_axis(attributes.integer("axis"), x.shape.size());
  if (!axis) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(x.shape)),
                  "axis", 0);
  }
  if (auto error = want_constant(x.shape[*axis], "split axis")) return tl::unexpected(*error);
  const std::int64_t parts = attributes.integer("parts");
  std::vector<std::int64_t> sizes = attributes.integers("sizes");
  if ((parts == 0) == sizes.empty()) return refuse("wants either 'parts' or 'sizes'", "parts");
  const std::int64_t length = x.shape[*axis].constant;
  if (parts > 0 && length % parts != 0) {
    return refuse(
        fmt::format("{} parts do not divide axis {} of {}", parts, *axis, to_string(x.shape)),
        "parts", 0);
  }
  if (parts > 0) sizes.assign(static_cast<std::size_t>(parts), length / parts);
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) sum = checked_add(sum, size);
  if (sum != length) {
    return refuse(
        fmt::format("sizes of {} in all do not cut axis {} of {}", sum, *axis, to_string(x.shape)),
        "sizes", 0);
  }
  Inference result;
  for (const std::int64_t size : sizes) {
    Shape part = x.shape;
    part[*axis] = size;
    result.outputs.push_back({part, x.type});
  }
  return result;
}

int part_count(const OperatorLowering& lowering) {
  return static_cast<int>(lowering.op().outputs.size());
}

using MakePart = void (*)(OperatorLowering& lowering, int output, std::size_t axis, const Run& run);

template <MakePart make>
void forward_split(OperatorLowering& lowering) {
  const std::size_t axis = joined_axis(lowering, lowering.input().shape.size());
  Run run;
  for (int i = 0; i < part_count(lowering); ++i) {
    run.length = lowering.output_type(i).shape[axis];
    make(lowering, i, axis, run);
    run.start = run.start + run.length;
  }
}

void copy_part(OperatorLowering& lowering, int output, std::size_t axis, const Run& run) {
  lowering.emit(Kernel::slice, fmt::format("forward.{}", output), {lowering.input()},
                {lowering.new_output(output)}, {.attributes = joined_place(axis, run.start)});
}

void view_part(OperatorLowering& lowering, int output, std::size_t axis, const Run& run) {
  lowering.set_output(output, sliced(lowering.input(), axis, run.start, run.length));
}

void backward_split(OperatorLowering& lowering) {
  std::vector<TensorView> gradients;
  for (int i = 0; i < part_count(lowering); ++i) {
    if (lowering.has_output_gradient(i)) {
      gradients.push_back(lowering.output_gradient(i));
      continue;
    }
    const TensorType& type = lowering.output_type(i);
    const TensorView zeros = lowering.new_tensor(fmt::format("zeros{}", i), type.shape, type.type,
                                                 StorageClass::activation_gradient);
    Attributes value;
    value.set("value", 0.0);
    lowering.emit(Kernel::fill, fmt::format("backward.zeros{}", i), {}, {zeros},
                  {.attributes = value});
    gradients.push_back(zeros);
  }
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::concatenate, "backward", gradients, {dx},
                {.attributes = joined_place(joined_axis(lowering, dx.shape.size()), 0)});
  lowering.give_input_gradient(0, dx);
}

AttributeSpec axis_attribute(std::int64_t value) {
  return {.name = "axis",
          .type = AttributeType::integer,
          .doc = "which axis; negative counts from the last",
          .default_value = value};
}

}  // namespace

OperatorRow rows::concat() {
  return {.name = "concat",
          .doc = "join tensors along an axis",
          .attributes = {axis_attribute(1)},
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_concat,
          .lowering = {.stowage = {forward_concat, backward_concat<give_copied_part>},
                       .pytorch = {forward_concat, backward_concat<give_view_of_part>}}};
}

OperatorRow rows::stack() {
  return {.name = "stack",
          .doc = "join tensors of one shape along a new axis",
          .attributes = {axis_attribute(0)},
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_stack,
          .lowering = {.stowage = {forward_stack, backward_stack_stowage},
                       .pytorch = {forward_stack, backward_stack_pytorch}}};
}

OperatorRow rows::split() {
  return {.name = "split",
          .doc = "cut a tensor into parts along an axis",
          .attributes = {{.name = "parts",
                          .type = AttributeType::integer,
                          .doc = "how many equal outputs; 0: see `sizes`",
                          .default_value = std::int64_t{0},
                          .minimum = 0,
                          .maximum = 4096},
                         {.name = "sizes",
                          .type = AttributeType::integers,
                          .doc = "the length of each output along the axis",
                          .default_value = std::vector<std::int64_t>{},
                          .minimum = 1},
                         axis_attribute(-1)},
          .infer = infer_split,
          .lowering = {.stowage = {forward_split<copy_part>, backward_split},
                       .pytorch = {forward_split<view_part>, backward_split}}};
}

}  // namespace stowage
