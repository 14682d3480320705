// linear (y = x w^T + b over the last axis) and matmul (batched product, leading axes broadcast).
#include <fmt/format.h>

#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_linear(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (x.shape.empty()) return refuse("wants at least one axis, but its input is a scalar", {}, 0);
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (auto error = want_constant(x.shape.back(), "last axis")) return tl::unexpected(*error);
  const std::int64_t in = x.shape.back().constant;
  const std::int64_t out = attributes.integer("features");
  Inference result;
  Shape y = x.shape;
  y.back() = out;
  result.outputs = {{y, x.type}};
  result.parameters.push_back({.name = "weight", .shape = {out, in}, .type = x.type});
  if (attributes.boolean("bias")) {
    result.parameters.push_back({.name = "bias", .shape = {out}, .type = x.type});
  }
  result.flops = element_count(y) * Affine(2 * in);
  return result;
}

/// PyTorch multiplies a matrix as it lies in memory, and saves it so; more axes are flattened into
/// one first, which copies what is not contiguous.
TensorView as_matrix(OperatorLowering& lowering, const TensorView& view, std::string_view suffix) {
  if (lowering.pytorch() && view.shape.size() == 2) return view;
  return lowering.contiguous(view, suffix);
}

void forward_linear(OperatorLowering& lowering) {
  const TensorView x = as_matrix(lowering, lowering.input(), "input.contiguous");
  const TensorView w = lowering.parameter(0);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> reads{x, w};
  if (lowering.parameter_count() > 1) reads.push_back(lowering.parameter(1));
  lowering.emit(Kernel::linear_forward, "forward", reads, {y},
                {.flops = element_count(y.shape) * Affine(2) * w.shape[1]});
  if (lowering.parameter_needs_gradient(0)) lowering.save("input", x);
  if (lowering.input_needs_gradient()) lowering.save("weight", w);
}

void backward_linear(OperatorLowering& lowering) {
  const TensorView w = lowering.parameter(0);
  const TensorView dy = as_matrix(lowering, lowering.output_gradient(), "grad.contiguous");
  const Affine flops = element_count(dy.shape) * Affine(2) * w.shape[1];
  KernelNode* last = nullptr;
  const auto data = [&] {
    if (!lowering.input_needs_gradient()) return;
    TensorView dx = lowering.new_input_gradient();
    dx.is_view = dx.shape.size() != 2;  // addmm works on the flattened input
    last = &lowering.emit(Kernel::linear_backward_data, "backward.data", {dy, w}, {dx},
                          {.flops = flops});
    lowering.give_input_gradient(0, dx);
  };
  const auto filter = [&] {
    if (!lowering.parameter_needs_gradient(0)) return;
    TensorView dw = lowering.new_parameter_gradient(0);
    dw.is_view = true;  // of the product's transposition
    last = &lowering.emit(Kernel::linear_backward_filter, "backward.filter",
                          {lowering.saved("input"), dy}, {dw}, {.flops = flops});
    lowering.give_parameter_gradient(0, dw);
  };
  // AddmmBackward makes mat1's gradient, then mat2's; the engine then sums the bias's.
  if (lowering.pytorch()) data();
  filter();
  const std::int64_t features = static_cast<std::int64_t>(dy.shape.size()) - 1;
  if (KernelNode* node = emit_bias_gradient(lowering, dy, features)) last = node;
  if (!lowering.pytorch()) data();
  if (last == nullptr || dy.storage == lowering.output_gradient().storage) return;
  // The flattening that copied the gradient is a node of its own, which has let go of it.
  lowering.hold_by_hand();
  if (lowering.has_saved("input")) last->holds.push_back(lowering.saved("input").storage);
  last->holds.push_back(dy.storage);
}

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

void forward_matmul(OperatorLowering& lowering) {
  const TensorView a = lowering.contiguous(lowering.input(0), "a.contiguous");
  const TensorView b = lowering.contiguous(lowering.input(1), "b.contiguous");
  const bool ta = lowering.attributes().boolean("transpose_a");
  const bool tb = lowering.attributes().boolean("transpose_b");
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::matmul, "forward", {a, b}, {y},
                {.attributes = transposes(ta, tb),
                 .flops = element_count(y.shape) * Affine(2) * matrix(a.shape, ta).columns});
  if (lowering.input_needs_gradient(1)) lowering.save("self", a);
  if (lowering.input_needs_gradient(0)) lowering.save("mat2", b);
}

void backward_matmul(OperatorLowering& lowering) {
  const bool ta = lowering.attributes().boolean("transpose_a");
  const bool tb = lowering.attributes().boolean("transpose_b");
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  if (lowering.input_needs_gradient(0)) {
    const TensorView b = lowering.saved("mat2");
    const TensorView da = lowering.new_input_gradient(0);
    const Affine flops = element_count(dy.shape) * Affine(2) * matrix(b.shape, tb).rows;
    // y = A B: dA = dy B^T; stored transposed, dA^T = B dy^T.
    if (ta) {
      lowering.emit(Kernel::matmul, "backward.a", {b, dy}, {da},
                    {.attributes = transposes(tb, true), .flops = flops});
    } else {
      lowering.emit(Kernel::matmul, "backward.a", {dy, b}, {da},
                    {.attributes = transposes(false, !tb), .flops = flops});
    }
    lowering.give_input_gradient(0, da);
  }
  if (lowering.input_needs_gradient(1)) {
    const TensorView a = lowering.saved("self");
    const TensorView db = lowering.new_input_gradient(1);
    const Affine flops = element_count(dy.shape) * Affine(2) * matrix(a.shape, ta).columns;
    if (tb) {
      lowering.emit(Kernel::matmul, "backward.b", {dy, a}, {db},
                    {.attributes = transposes(true, ta), .flops = flops});
    } else {
      lowering.emit(Kernel::matmul, "backward.b", {a, dy}, {db},
                    {.attributes = transposes(!ta, false), .flops = flops});
    }
    lowering.give_input_gradient(1, db);
  }
}

AttributeSpec transpose_attribute(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::boolean, .doc = doc, .default_value = false};
}

}  // namespace

OperatorRow rows::linear() {
  return {.name = "linear",
          .doc = "fully connected layer over the last axis",
          .attributes = {{.name = "features",
                          .type = AttributeType::integer,
                          .doc = "output features",
                          .minimum = 1},
                         bias_attribute()},
          .infer = infer_linear,
          .lowering = {LoweringRules{forward_linear, backward_linear},
                       LoweringRules{forward_linear, backward_linear}},
          .autocast = AutocastClass::lower};
}

OperatorRow rows::matmul() {
  return {.name = "matmul",
          .doc = "matrix product of the last two axes, leading axes broadcast",
          .attributes = {transpose_attribute("transpose_a", "transpose the first operand"),
                         transpose_attribute("transpose_b", "transpose the second operand")},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_matmul,
          .lowering = {LoweringRules{forward_matmul, backward_matmul},
                       LoweringRules{forward_matmul, backward_matmul}},
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
