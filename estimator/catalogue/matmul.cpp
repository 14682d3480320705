// matmul: a product of matrices in the last two axes, leading axes broadcast.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

/// Rows and columns of a matrix operand after an optional transposition.
struct Matrix {
  Affine rows, columns;
};
Matrix matrix(const Shape& shape, bool transposed) {
  const Affine r = shape[shape.size() - 2];
  const Affine c = shape.back();
  return transposed ? Matrix{c, r} : Matrix{r, c};
}

tl::expected<Inference, InferenceError> infer_matmul(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  for (int i = 0; i < 2; ++i) {
    const TensorType& operand = inputs[static_cast<std::size_t>(i)];
    if (operand.shape.size() < 2) {
      return refuse(
          fmt::format("wants matrices, but an operand has shape {}", to_string(operand.shape)), {},
          i);
    }
    if (auto error = want_floating(operand, i)) return tl::unexpected(*error);
  }
  const Matrix a = matrix(inputs[0].shape, attributes.boolean("transpose_a"));
  const Matrix b = matrix(inputs[1].shape, attributes.boolean("transpose_b"));
  if (a.columns != b.rows) {
    return refuse(fmt::format("cannot multiply {} by {}: the inner axes are {} and {}",
                              to_string(inputs[0].shape), to_string(inputs[1].shape),
                              a.columns.to_string(), b.rows.to_string()),
                  {}, 1);
  }
  const auto leading = broadcast(Shape(inputs[0].shape.begin(), inputs[0].shape.end() - 2),
                                 Shape(inputs[1].shape.begin(), inputs[1].shape.end() - 2));
  if (!leading) {
    return refuse(fmt::format("the leading axes of {} and {} do not broadcast",
                              to_string(inputs[0].shape), to_string(inputs[1].shape)),
                  {}, 1);
  }
  Shape y = *leading;
  y.push_back(a.rows);
  y.push_back(b.columns);
  Inference result;
  result.outputs = {{y, inputs[0].type}};
  result.flops = element_count(y) * Affine(2) * a.columns;
  return result;
}

Attributes transposes(bool a, bool b) {
  Attributes attributes;
  attributes.set("transpose_a", a);
  attributes.set("transpose_b", b);
  attributes.set("alpha", 1.0);
  return attributes;
}

/// An operand as matrices [batch..., rows, columns], transposed if the attributes say so.
TensorView oriented(const TensorView& view, bool transposed) {
  if (!transposed) return view;
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < std::ssize(view.shape); ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 2], axes.back());
  return permuted(view, axes);
}

/// A view that repeats the matrices along the leading axes of `y`.
TensorView broadcast_over_batches(const TensorView& view, const Shape& y) {
  TensorView result = view;
  const std::size_t lead = y.size() - view.shape.size();
  result.shape.assign(y.begin(), y.end() - 2);
  result.shape.insert(result.shape.end(), view.shape.end() - 2, view.shape.end());
  result.strides.assign(y.size(), 0);
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == result.shape[lead + i]) result.strides[lead + i] = view.strides[i];
  }
  return result;
}

Shape three_axes(const Shape& shape) {
  const Affine count = element_count(Shape(shape.begin(), shape.end() - 2));
  return {count, shape[shape.size() - 2], shape.back()};
}

TensorView batches_merged(OperatorLowering& lowering, const TensorView& view,
                          std::string_view name) {
  if (auto same = reshaped(view, three_axes(view.shape))) return *same;
  return *reshaped(lowering.contiguous(view, name), three_axes(view.shape));
}

/// Both operands have leading axes, so that ATen's matmul makes one bmm of them (LinearAlgebra.cpp,
/// _matmul_impl): each is repeated along the other's leading axes and reshaped to three axes, which
/// copies it unless its leading axes merge. bmm saves what it got.
bool is_batched(const OperatorLowering& lowering) {
  return lowering.input(0).shape.size() > 2 && lowering.input(1).shape.size() > 2;
}

/// The operands that PyTorch's product gets: transposed by the script, then converted by autocast.
TensorView factor_view(OperatorLowering& lowering, int i, bool transposed) {
  return lowering.cast(oriented(lowering.input(i), transposed), lowering.output_type().type,
                       fmt::format("input{}.cast", i));
}

void forward_batched(OperatorLowering& lowering) {
  const bool ta = lowering.attributes().boolean("transpose_a");
  const bool tb = lowering.attributes().boolean("transpose_b");
  const Shape& shape = lowering.output_type().shape;
  const TensorView second = factor_view(lowering, 1, tb);  // arguments are converted last first
  const TensorView first = factor_view(lowering, 0, ta);
  const TensorView a =
      batches_merged(lowering, broadcast_over_batches(first, shape), "a.contiguous");
  const TensorView b =
      batches_merged(lowering, broadcast_over_batches(second, shape), "b.contiguous");
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::matmul, "forward", {a, b}, {*reshaped(y, three_axes(shape))},
                {.attributes = transposes(false, false),
                 .holds = {lowering.input(0).storage, lowering.input(1).storage, first.storage,
                           second.storage},
                 .flops = element_count(shape) * Affine(2) * a.shape[2]});
  if (lowering.input_needs_gradient(1)) lowering.save("self", a);
  if (lowering.input_needs_gradient(0)) lowering.save("mat2", b);
}

/// The gradient of an operand from the bmm to the operator's input: a view of the bmm's result,
/// summed if the operand was repeated, converted if autocast did, and transposed back.
struct OperandGradient {
  int input = 0;
  bool turned = false;
  TensorView view;
};

OperandGradient unmerged(OperatorLowering& lowering, int i, const TensorView& gradient,
                         bool turned) {
  const Shape own = oriented(lowering.input(i), turned).shape;
  const Shape& y = lowering.output_type().shape;
  Shape whole(y.begin(), y.end() - 2);
  whole.insert(whole.end(), {gradient.shape[1], gradient.shape[2]});
  const TensorView result = *reshaped(gradient, whole);
  if (own == whole) return {i, turned, result};
  const TensorView sum = lowering.new_tensor(i == 0 ? "grad_a.sum" : "grad_b.sum", own,
                                             gradient.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::sum_to_shape, i == 0 ? "backward.a.sum" : "backward.b.sum", {result}, {sum},
                {.flops = element_count(whole)});
  return {i, turned, sum};
}

/// Passes the gradients on in the engine's order, the latest node first: the product's views of the
/// second operand and of the first, the conversions of the first and of the second, then the
/// script's transpositions.
void give_operands(OperatorLowering& lowering, std::vector<OperandGradient> second_first) {
  std::vector<OperandGradient> converted, turned;
  for (auto& gradient : second_first) {
    if (gradient.view.type != lowering.input(gradient.input).type) {
      converted.insert(converted.begin(), gradient);
    } else if (gradient.turned) {
      turned.push_back(gradient);
    } else {
      lowering.give_input_gradient(gradient.input, gradient.view);
    }
  }
  for (auto& gradient : converted) {
    gradient.view = lowering.cast(gradient.view, lowering.input(gradient.input).type,
                                  fmt::format("grad_input{}.cast", gradient.input));
    if (!gradient.turned) lowering.give_input_gradient(gradient.input, gradient.view);
  }
  for (auto& gradient : converted) {
    if (gradient.turned) turned.push_back(gradient);
  }
  std::sort(turned.begin(), turned.end(),
            [](const auto& a, const auto& b) { return a.input > b.input; });
  for (const auto& gradient : turned) {
    lowering.give_input_gradient(gradient.input, oriented(gradient.view, true));
  }
}

void backward_batched(OperatorLowering& lowering) {
  const bool ta = lowering.attributes().boolean("transpose_a");
  const bool tb = lowering.attributes().boolean("transpose_b");
  lowering.hold_by_hand();
  const TensorView dy = batches_merged(lowering, lowering.output_gradient(), "grad.contiguous");
  std::vector<StorageId> holds{dy.storage};
  std::optional<TensorView> da, db;
  const Affine flops =
      element_count(dy.shape) * Affine(2) * matrix(lowering.input(0).shape, ta).columns;
  const auto made = [&](std::string_view name, Affine rows, Affine columns) {
    return lowering.new_tensor(name, {dy.shape[0], rows, columns}, dy.type,
                               StorageClass::activation_gradient);
  };
  if (lowering.input_needs_gradient(0)) {
    const TensorView b = lowering.saved("mat2");
    holds.push_back(b.storage);
    da = made("grad_a", dy.shape[1], b.shape[1]);
    lowering.emit(Kernel::matmul, "backward.a", {dy, b}, {*da},
                  {.attributes = transposes(false, true), .flops = flops});
  }
  if (lowering.input_needs_gradient(1)) {
    const TensorView a = lowering.saved("self");
    db = made("grad_b", a.shape[2], dy.shape[2]);
    lowering.emit(Kernel::matmul, "backward.b", {a, dy}, {*db},
                  {.attributes = transposes(true, false), .holds = holds, .flops = flops});
  }
  std::vector<OperandGradient> gradients;
  if (db) gradients.push_back(unmerged(lowering, 1, *db, tb));
  if (da) gradients.push_back(unmerged(lowering, 0, *da, ta));
  give_operands(lowering, std::move(gradients));
}

void forward_one_product(OperatorLowering& lowering) {
  const TensorView second = factor_view(lowering, 1, false);
  const TensorView a = lowering.contiguous(factor_view(lowering, 0, false), "a.contiguous");
  const TensorView b = lowering.contiguous(second, "b.contiguous");
  const bool ta = lowering.attributes().boolean("transpose_a");
  const bool tb = lowering.attributes().boolean("transpose_b");
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::matmul, "forward", {a, b}, {y},
                {.attributes = transposes(ta, tb),
                 .flops = element_count(y.shape) * Affine(2) * matrix(a.shape, ta).columns});
  if (lowering.input_needs_gradient(1)) lowering.save("self", a);
  if (lowering.input_needs_gradient(0)) lowering.save("mat2", b);
}

/// `holds_operands`: each product holds what the operator's autograd node holds: the arrived
/// gradient and the saved tensors.
void backward_products(OperatorLowering& lowering, bool holds_operands) {
  const bool ta = lowering.attributes().boolean("transpose_a");
  const bool tb = lowering.attributes().boolean("transpose_b");
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  lowering.hold_by_hand();  // conversions are nodes of their own
  std::vector<StorageId> holds{dy.storage, lowering.output_gradient().storage};
  for (const std::string_view role : {"self", "mat2"}) {
    if (lowering.has_saved(role)) holds.push_back(lowering.saved(role).storage);
  }
  if (lowering.input_needs_gradient(0)) {
    const TensorView b = lowering.saved("mat2");
    const TensorView da = lowering.new_tensor("grad_a", lowering.input(0).shape, dy.type,
                                              StorageClass::activation_gradient);
    const Affine flops = element_count(dy.shape) * Affine(2) * matrix(b.shape, tb).rows;
    // y = A B: dA = dy B^T; stored transposed, dA^T = B dy^T.
    if (ta) {
      lowering.emit(Kernel::matmul, "backward.a", {b, dy}, {da},
                    {.attributes = transposes(tb, true), .flops = flops});
    } else {
      lowering.emit(Kernel::matmul, "backward.a", {dy, b}, {da},
                    {.attributes = transposes(false, !tb), .flops = flops});
    }
    if (holds_operands) lowering.also_hold(holds);
    lowering.give_input_gradient(0, da);
  }
  if (lowering.input_needs_gradient(1)) {
    const TensorView a = lowering.saved("self");
    const TensorView db = lowering.new_tensor("grad_b", lowering.input(1).shape, dy.type,
                                              StorageClass::activation_gradient);
    const Affine flops = element_count(dy.shape) * Affine(2) * matrix(a.shape, ta).columns;
    if (tb) {
      lowering.emit(Kernel::matmul, "backward.b", {dy, a}, {db},
                    {.attributes = transposes(true, ta), .flops = flops});
    } else {
      lowering.emit(Kernel::matmul, "backward.b", {a, dy}, {db},
                    {.attributes = transposes(!ta, false), .flops = flops});
    }
    if (holds_operands) lowering.also_hold(holds);
    lowering.give_input_gradient(1, db);
  }
}

void backward_matmul_stowage(OperatorLowering& lowering) { backward_products(lowering, false); }

void forward_matmul_pytorch(OperatorLowering& lowering) {
  if (is_batched(lowering)) return forward_batched(lowering);
  forward_one_product(lowering);
}

void backward_matmul_pytorch(OperatorLowering& lowering) {
  if (is_batched(lowering)) return backward_batched(lowering);
  backward_products(lowering, true);
}

AttributeSpec transpose_attribute(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::boolean, .doc = doc, .default_value = false};
}

}  // namespace

OperatorRow rows::matmul() {
  return {.name = "matmul",
          .doc = "matrix product of the last two axes, leading axes broadcast",
          .attributes = {transpose_attribute("transpose_a", "transpose the first operand"),
                         transpose_attribute("transpose_b", "transpose the second operand")},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_matmul,
          .lowering = {.stowage = {forward_one_product, backward_matmul_stowage},
                       .pytorch = {forward_matmul_pytorch, backward_matmul_pytorch, true}},
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
