// slice_scatter: a tensor with another one in place of a part of it, as `x[:, 1:] = y` writes it.
//
// PyTorch copies into a view of x, in place or in a copy of x. What rewrites the history of a base
// (CopySlices in torch/csrc/autograd/functions/tensor.cpp) copies the gradient, hands a copy of its
// part on and writes zeros over it; it saves nothing (tests/reference/indexing_saved.py). Our
// executor surrounds the part with zeros and selects by a mask.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

std::vector<std::int64_t> part_starts(const Attributes& attributes, std::size_t rank) {
  std::vector<std::int64_t> starts = attributes.integers("start");
  if (starts.empty()) starts.resize(rank);
  return starts;
}

std::optional<std::string> part_problem(const Shape& x, const Shape& part,
                                        const std::vector<std::int64_t>& starts) {
  if (part.size() != x.size() || starts.size() != x.size()) {
    return fmt::format("a part {} and {} starts do not go with {}", to_string(part), starts.size(),
                       to_string(x));
  }
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    const bool whole = starts[axis] == 0 && part[axis] == x[axis];
    const bool inside = x[axis].is_constant() && part[axis].is_constant() &&
                        starts[axis] + part[axis].constant <= x[axis].constant;
    if (!whole && !inside) {
      return fmt::format("{} from place {} of axis {} on is no part of {}", to_string(part),
                         starts[axis], axis, to_string(x));
    }
  }
  return std::nullopt;
}

tl::expected<Inference, InferenceError> infer_slice_scatter(const Attributes& attributes,
                                                            std::span<const TensorType> inputs) {
  const auto starts = part_starts(attributes, inputs[0].shape.size());
  if (auto problem = part_problem(inputs[0].shape, inputs[1].shape, starts)) {
    return refuse(*std::move(problem), "start", 1);
  }
  if (inputs[0].type != inputs[1].type) {
    return refuse(fmt::format("its inputs are {} and {}", to_string(inputs[0].type),
                              to_string(inputs[1].type)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

std::vector<std::int64_t> part_starts(const OperatorLowering& lowering) {
  return part_starts(lowering.attributes(), lowering.input().shape.size());
}

/// The part of `whole` that is written, as a view.
TensorView part_view(const OperatorLowering& lowering, const TensorView& whole) {
  const std::vector<std::int64_t> starts = part_starts(lowering);
  TensorView view = whole;
  for (std::size_t axis = 0; axis < starts.size(); ++axis) {
    view = sliced(view, axis, starts[axis], lowering.input(1).shape[axis]);
  }
  view.is_view = true;
  return view;
}

void forward_slice_scatter_pytorch(OperatorLowering& lowering) {
  TensorView y = lowering.input();
  if (asked_in_place(lowering)) {
    lowering.set_output(0, y);
  } else {
    y = new_output_like(lowering, lowering.input());
    lowering.emit(Kernel::copy, "clone", {lowering.input()}, {y});
  }
  lowering.emit(Kernel::copy, "forward", {lowering.input(1)}, {part_view(lowering, y)});
}

/// Whether the part is the whole tensor: `x[:] = y` copies without a view.
bool writes_the_whole(const OperatorLowering& lowering) {
  return lowering.input(0).shape == lowering.input(1).shape;
}

TensorView zeros_of(OperatorLowering& lowering, const Shape& shape, DataType type) {
  TensorView zeros = lowering.new_tensor("zeros", shape, type, StorageClass::activation_gradient);
  Attributes zero;
  zero.set("value", 0.0);
  lowering.emit(Kernel::fill, "backward.zeros", {}, {zeros}, {.attributes = std::move(zero)});
  return zeros;
}

void backward_whole_copy(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  if (lowering.input_needs_gradient(0)) {
    lowering.give_input_gradient(0, zeros_of(lowering, dy.shape, dy.type));
  }
  if (lowering.input_needs_gradient(1)) lowering.give_input_gradient(1, dy);
}

void backward_slice_scatter_pytorch(OperatorLowering& lowering) {
  if (writes_the_whole(lowering)) return backward_whole_copy(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView whole = ordered_like(
      lowering.new_tensor("grad_base", dy.shape, dy.type, StorageClass::activation_gradient),
      lowering.output());
  lowering.emit(Kernel::copy, "backward.base", {dy}, {whole});
  const TensorView view = part_view(lowering, whole);
  TensorView part =
      lowering.new_tensor("grad_part", view.shape, view.type, StorageClass::activation_gradient);
  part.strides = dense_strides(view.shape, view.strides);
  lowering.emit(Kernel::copy, "backward.part", {view}, {part});
  if (lowering.input_needs_gradient(0)) {
    const TensorView zeros = zeros_of(lowering, view.shape, view.type);
    lowering.emit(Kernel::copy, "backward.cleared", {zeros}, {view}, {.holds = {part.storage}});
    lowering.give_input_gradient(0, whole);
  }
  if (lowering.input_needs_gradient(1)) lowering.give_input_gradient(1, part);
}

/// A tensor of the part's shape filled with `value`.
TensorView filled_part(OperatorLowering& lowering, const std::string& suffix, DataType type,
                       double value) {
  TensorView made =
      lowering.new_tensor(suffix, lowering.input(1).shape, type, StorageClass::activation);
  Attributes attributes;
  attributes.set("value", value);
  lowering.emit(Kernel::fill, suffix, {}, {made}, {.attributes = std::move(attributes)});
  return made;
}

/// The margins around the part: padding by them gives the whole, and cropping by them gives the
/// part.
Attributes part_margins(const OperatorLowering& lowering, std::int64_t sign) {
  const std::vector<std::int64_t> starts = part_starts(lowering);
  const Shape &whole = lowering.input(0).shape, &part = lowering.input(1).shape;
  std::vector<std::int64_t> before(starts.size()), after(starts.size());
  for (std::size_t axis = 0; axis < starts.size(); ++axis) {
    const Affine rest = whole[axis] - part[axis] - Affine(starts[axis]);
    before[axis] = sign * starts[axis];
    after[axis] = sign * rest.constant;
  }
  Attributes attributes;
  attributes.set("before", std::move(before));
  attributes.set("after", std::move(after));
  attributes.set("mode", std::string("constant"));
  attributes.set("value", 0.0);
  return attributes;
}

TensorView surrounded_part(OperatorLowering& lowering, const TensorView& part,
                           const std::string& suffix) {
  TensorView whole =
      lowering.new_tensor(suffix, lowering.input(0).shape, part.type, StorageClass::activation);
  lowering.emit(Kernel::pad, suffix, {part}, {whole}, {.attributes = part_margins(lowering, 1)});
  return whole;
}

/// A mask that is true in the part.
TensorView part_mask(OperatorLowering& lowering, const std::string& suffix) {
  const TensorView ones = filled_part(lowering, suffix + ".ones", DataType::boolean, 1.0);
  return surrounded_part(lowering, ones, suffix);
}

void forward_slice_scatter_stowage(OperatorLowering& lowering) {
  const TensorView mask = part_mask(lowering, "mask");
  const TensorView part = surrounded_part(lowering, lowering.input(1), "part");
  lowering.emit(Kernel::select, "forward", {mask, part, lowering.input(0)},
                {lowering.new_output()});
}

void backward_slice_scatter_stowage(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  if (lowering.input_needs_gradient(1)) {
    const TensorView part = lowering.new_input_gradient(1);
    lowering.emit(Kernel::pad, "backward.part", {dy}, {part},
                  {.attributes = part_margins(lowering, -1)});
    lowering.give_input_gradient(1, part);
  }
  if (!lowering.input_needs_gradient(0)) return;
  const TensorView mask = part_mask(lowering, "backward.mask");
  const TensorView zeros = filled_part(lowering, "backward.zeros", dy.type, 0.0);
  const TensorView nothing = surrounded_part(lowering, zeros, "backward.nothing");
  const TensorView whole = lowering.new_input_gradient(0);
  lowering.emit(Kernel::select, "backward.base", {mask, nothing, dy}, {whole});
  lowering.give_input_gradient(0, whole);
}

}  // namespace

OperatorRow rows::slice_scatter() {
  return {.name = "slice_scatter",
          .doc = "a tensor (first input) with another (second) in place of a part of it",
          .attributes = {{.name = "start",
                          .type = AttributeType::integers,
                          .doc = "the part's first place, one an axis; [] is the beginning of all",
                          .default_value = std::vector<std::int64_t>{},
                          .minimum = 0,
                          .maximum = 1LL << 40},
                         in_place_attribute("overwrite the first input, as x[...] = y does; else "
                                            "a copy of it")},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_slice_scatter,
          .lowering = {.stowage = {forward_slice_scatter_stowage, backward_slice_scatter_stowage},
                       .pytorch = {forward_slice_scatter_pytorch, backward_slice_scatter_pytorch}}};
}

}  // namespace stowage
