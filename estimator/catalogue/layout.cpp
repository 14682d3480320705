// reshape, flatten and transpose. In PyTorch they are views where the strides allow it; our
// executor's tensors are contiguous, so that a reshape is free and a transposition copies.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <set>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_reshape(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  Shape y = attributes.dimensions("shape");
  Affine known = 1;
  int rest = -1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (y[i] == Affine(-1)) {
      if (rest >= 0) return refuse("only one dimension can be -1", "shape");
      rest = static_cast<int>(i);
    } else if (y[i].constant < 0 || y[i].slope < 0 || y[i] == Affine(0)) {
      return refuse(fmt::format("{} is not a dimension", y[i].to_string()), "shape");
    } else {
      known = known * y[i];
    }
  }
  const Affine count = element_count(x.shape);
  if (rest >= 0 && divides(known, count)) {
    y[static_cast<std::size_t>(rest)] = quotient(count, known);
    known = known * y[static_cast<std::size_t>(rest)];
  }
  if (known != count) {
    return refuse(
        fmt::format("{} has {} elements, {} has {}", to_string(x.shape), count.to_string(),
                    to_string(attributes.dimensions("shape")), known.to_string()),
        "shape", 0);
  }
  Inference result;
  result.outputs = {{y, x.type}};
  return result;
}

tl::expected<Inference, InferenceError> infer_flatten(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto start = resolve_axis(attributes.integer("start"), x.shape.size());
  if (!start) {
    return refuse(fmt::format("axis {} is outside its input's shape {}",
                              attributes.integer("start"), to_string(x.shape)),
                  "start", 0);
  }
  const auto end = resolve_axis(attributes.integer("end"), x.shape.size());
  if (!end || *end < *start) {
    return refuse(
        fmt::format("end {} is not an axis of its input's shape {} from start {} on",
                    attributes.integer("end"), to_string(x.shape), attributes.integer("start")),
        "end", 0);
  }
  const auto first = x.shape.begin() + static_cast<std::ptrdiff_t>(*start);
  const auto past = x.shape.begin() + static_cast<std::ptrdiff_t>(*end) + 1;
  Shape y(x.shape.begin(), first);
  y.push_back(element_count(Shape(first, past)));
  y.insert(y.end(), past, x.shape.end());
  Inference result;
  result.outputs = {{y, x.type}};
  return result;
}

TensorView view_or_copy(OperatorLowering& lowering, const TensorView& view, const Shape& shape,
                        std::string_view name) {
  if (auto same = reshaped(view, shape)) return *same;
  const TensorView copy = lowering.contiguous(view, name);
  return *reshaped(copy, shape);
}

void forward_reshape(OperatorLowering& lowering) {
  lowering.set_output(
      0, view_or_copy(lowering, lowering.input(), lowering.output_type().shape, "copy"));
}

void backward_reshape(OperatorLowering& lowering) {
  lowering.give_input_gradient(0, view_or_copy(lowering, lowering.output_gradient(),
                                               lowering.input().shape, "backward.copy"));
}

tl::expected<Inference, InferenceError> infer_transpose(const Attributes& attributes,
                                                        std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto& axes = attributes.integers("axes");
  std::set<std::int64_t> seen;
  for (const std::int64_t axis : axes) {
    if (axis >= 0 && axis < std::ssize(x.shape)) seen.insert(axis);
  }
  if (axes.size() != x.shape.size() || seen.size() != axes.size()) {
    return refuse(fmt::format("[{}] is not an order of the {} axes of {}", fmt::join(axes, ", "),
                              x.shape.size(), to_string(x.shape)),
                  "axes", 0);
  }
  Shape y;
  for (const std::int64_t axis : axes) y.push_back(x.shape[static_cast<std::size_t>(axis)]);
  Inference result;
  result.outputs = {{y, x.type}};
  return result;
}

std::vector<std::int64_t> inverse(const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> result(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    result[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  }
  return result;
}

Attributes permutation_attributes(std::vector<std::int64_t> axes) {
  Attributes attributes;
  attributes.set("axes", std::move(axes));
  return attributes;
}

void forward_transpose_stowage(OperatorLowering& lowering) {
  lowering.emit(Kernel::permute, "forward", {lowering.input()}, {lowering.new_output()},
                {.attributes = permutation_attributes(lowering.attributes().integers("axes"))});
}

void forward_transpose_pytorch(OperatorLowering& lowering) {
  lowering.set_output(0, permuted(lowering.input(), lowering.attributes().integers("axes")));
}

void backward_transpose_stowage(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(
      Kernel::permute, "backward", {lowering.output_gradient()}, {dx},
      {.attributes = permutation_attributes(inverse(lowering.attributes().integers("axes")))});
  lowering.give_input_gradient(0, dx);
}

void backward_transpose_pytorch(OperatorLowering& lowering) {
  lowering.give_input_gradient(
      0, permuted(lowering.output_gradient(), inverse(lowering.attributes().integers("axes"))));
}

tl::expected<Inference, InferenceError> infer_contiguous(const Attributes&,
                                                         std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

void forward_contiguous(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  if (is_contiguous(x)) return lowering.set_output(0, x);
  lowering.emit(Kernel::copy, "forward", {x}, {lowering.new_output()});
}

void backward_contiguous(OperatorLowering& lowering) {
  lowering.give_input_gradient(0, lowering.output_gradient());
}

}  // namespace

OperatorRow rows::reshape() {
  return {.name = "reshape",
          .doc = "the same elements under another shape",
          .attributes = {{.name = "shape",
                          .type = AttributeType::dimensions,
                          .doc = "new dimensions; one may be -1: the rest"}},
          .infer = infer_reshape,
          .lowering = {.stowage = {forward_reshape, backward_reshape}}};
}

OperatorRow rows::flatten() {
  return {.name = "flatten",
          .doc = "join the axes from `start` to `end` into one",
          .attributes = {{.name = "start",
                          .type = AttributeType::integer,
                          .doc = "the first axis joined",
                          .default_value = std::int64_t{1}},
                         {.name = "end",
                          .type = AttributeType::integer,
                          .doc = "the last axis joined; negative counts from the last",
                          .default_value = std::int64_t{-1}}},
          .infer = infer_flatten,
          .lowering = {.stowage = {forward_reshape, backward_reshape}}};
}

OperatorRow rows::transpose() {
  return {.name = "transpose",
          .doc = "permute the axes",
          .attributes = {{.name = "axes",
                          .type = AttributeType::integers,
                          .doc = "the old axes in their new order",
                          .minimum = 0}},
          .infer = infer_transpose,
          .lowering = {.stowage = {forward_transpose_stowage, backward_transpose_stowage},
                       .pytorch = {forward_transpose_pytorch, backward_transpose_pytorch}}};
}

OperatorRow rows::contiguous() {
  return {.name = "contiguous",
          .doc = "a copy in row-major order of a tensor that lies otherwise in memory",
          .infer = infer_contiguous,
          .lowering = {.stowage = {forward_contiguous, backward_contiguous}}};
}

}  // namespace stowage
