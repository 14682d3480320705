// linear: y = x w^T + b over the last axis.
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

}  // namespace stowage
