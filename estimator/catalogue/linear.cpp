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

/// PyTorch multiplies matrices as they lie in memory, and saves them so; more axes are flattened
/// into one first, which copies what no view does.
TensorView as_matrix(OperatorLowering& lowering, const TensorView& view, std::string_view suffix) {
  const Affine columns = view.shape.back();
  if (reshaped(view, {quotient(element_count(view.shape), columns), columns})) return view;
  return lowering.contiguous(view, suffix);
}

/// at::linear (ATen/native/Linear.cpp) is one addmm where there is a bias and the input is a matrix
/// or contiguous, and else a product, to which the bias is added in place.
bool is_addmm(const OperatorLowering& lowering) {
  return lowering.parameter_count() > 1 &&
         (lowering.input().shape.size() == 2 || is_contiguous(lowering.input()));
}

/// The operand of the product. With a weight that needs no gradient, the input is flattened only if
/// a view can do it (should_fold in ATen/native/LinearAlgebra.cpp); else the product is batched,
/// and the outer axes must merge.
TensorView multiplied_by_weight(OperatorLowering& lowering) {
  const TensorView& x = lowering.input();
  if (x.shape.size() > 2 && lowering.training() && !lowering.parameter_needs_gradient(0)) {
    Shape three(x.shape.end() - 2, x.shape.end());
    three.insert(three.begin(), element_count(Shape(x.shape.begin(), x.shape.end() - 2)));
    if (reshaped(x, three)) return x;
  }
  return as_matrix(lowering, x, "input.contiguous");
}

void forward_linear(OperatorLowering& lowering) {
  const TensorView x = multiplied_by_weight(lowering);
  const TensorView w = lowering.parameter(0);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> reads{x, w};
  if (lowering.parameter_count() > 1) reads.push_back(lowering.parameter(1));
  lowering.emit(Kernel::linear_forward, "forward", reads, {y},
                {.holds = {lowering.input().storage},
                 .flops = element_count(y.shape) * Affine(2) * w.shape[1]});
  if (lowering.parameter_needs_gradient(0)) lowering.save("input", x);
  if (lowering.input_needs_gradient()) lowering.save("weight", w);
}

/// The kernels of the backward rule; each kernel set calls them in its own order.
class LinearBackward {
 public:
  explicit LinearBackward(OperatorLowering& lowering)
      : lowering_(lowering), dy_(lowering.output_gradient()) {}

  void flatten() { dy_ = as_matrix(lowering_, dy_, "grad.contiguous"); }

  void data() {
    if (!lowering_.input_needs_gradient()) return;
    TensorView dx = lowering_.new_input_gradient();
    dx.is_view = dx.shape.size() != 2;  // the product is of the flattened input
    last_ = &lowering_.emit(Kernel::linear_backward_data, "backward.data",
                            {dy_, lowering_.parameter(0)}, {dx}, {.flops = flops()});
    lowering_.give_input_gradient(0, dx);
  }

  void filter() {
    if (!lowering_.parameter_needs_gradient(0)) return;
    TensorView dw = lowering_.new_parameter_gradient(0);
    dw.is_view = true;  // of the product's transposition
    last_ = &lowering_.emit(Kernel::linear_backward_filter, "backward.filter",
                            {lowering_.saved("input"), dy_}, {dw}, {.flops = flops()});
    lowering_.give_parameter_gradient(0, dw);
  }

  void bias() {
    const std::int64_t features = static_cast<std::int64_t>(dy_.shape.size()) - 1;
    if (KernelNode* node = emit_bias_gradient(lowering_, dy_, features)) last_ = node;
  }

  /// The flattening that copied the gradient is a separate autograd node, which has released it by
  /// now.
  void hold() {
    if (last_ == nullptr || dy_.storage == lowering_.output_gradient().storage) return;
    lowering_.hold_by_hand();
    for (const std::string_view role : {"input", "weight"}) {
      if (lowering_.has_saved(role)) last_->holds.push_back(lowering_.saved(role).storage);
    }
    last_->holds.push_back(dy_.storage);
  }

 private:
  [[nodiscard]] Affine flops() const {
    return element_count(dy_.shape) * Affine(2) * lowering_.parameter(0).shape[1];
  }

  OperatorLowering& lowering_;
  TensorView dy_;
  KernelNode* last_ = nullptr;
};

void backward_linear_stowage(OperatorLowering& lowering) {
  LinearBackward backward(lowering);
  backward.filter();
  backward.bias();
  backward.data();
  backward.hold();
}

void backward_linear_pytorch(OperatorLowering& lowering) {
  LinearBackward backward(lowering);
  if (is_addmm(lowering)) {  // AddmmBackward makes mat1's, mat2's, then the bias's
    backward.flatten();
    backward.data();
    backward.filter();
    backward.bias();
  } else {
    backward.bias();  // of the addition, before the product's gradient is flattened
    backward.flatten();
    backward.filter();
    backward.data();
  }
  backward.hold();
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
          .lowering = {.stowage = {forward_linear, backward_linear_stowage},
                       .pytorch = {forward_linear, backward_linear_pytorch}},
          .is_linear = true,
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
