// local_response_norm across neighbouring channels (Krizhevsky et al., 2012): y = x / d^beta with
// d = k + alpha * the mean of x^2 over `size` channels.
//
// PyTorch writes it in operators (torch.nn.functional.local_response_norm): square, pad, average
// pool, scale, add, power, divide, each with its own backward; so it is lowered here, operator by
// operator and with autograd's lifetimes. Of these autocast runs the power alone in float32, and
// the division promotes to it. Our executor has one kernel, as cuDNN has.
#include <fmt/format.h>

#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_local_response_norm(
    const Attributes& attributes, std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (x.shape.size() < 3) {
    return refuse(fmt::format("wants [batch, channels, ...] with at least one more axis, but its "
                              "input has shape {}",
                              to_string(x.shape)),
                  {}, 0);
  }
  if (auto error = want_channels(x)) return tl::unexpected(*error);
  Inference result;
  result.outputs = {x};
  result.flops = element_count(x.shape) * Affine(attributes.integer("size") + 5);
  return result;
}

// PyTorch.

/// Emits PyTorch's operators one after another, each with a result of its own.
class Chain {
 public:
  explicit Chain(OperatorLowering& lowering) : lowering_(lowering) {}

  TensorView run(Kernel kernel, std::string_view suffix, std::vector<TensorView> reads,
                 const Shape& shape, std::vector<StorageId> holds = {}) {
    const DataType type = promoted(reads.front().type, reads.back().type);
    const TensorView y = lowering_.new_tensor(suffix, shape, type, storage_class_);
    lowering_.emit(kernel, suffix, std::move(reads), {y},
                   {.holds = std::move(holds), .flops = element_count(shape)});
    return y;
  }
  void in_backward() { storage_class_ = StorageClass::activation_gradient; }

 private:
  OperatorLowering& lowering_;
  StorageClass storage_class_ = StorageClass::activation;
};

/// The shape of the squares padded along the channels: [batch, channels + size - 1, ...].
Shape padded_shape(const OperatorLowering& lowering) {
  Shape shape = lowering.input().shape;
  shape[1] = shape[1] + Affine(lowering.attributes().integer("size") - 1);
  return shape;
}

void forward_local_response_norm_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  Chain chain(lowering);
  const TensorView square = chain.run(Kernel::multiply, "square", {x, x}, x.shape);
  const TensorView padded = chain.run(Kernel::pad, "pad", {square}, padded_shape(lowering));
  const TensorView mean = chain.run(Kernel::avg_pool_forward, "mean", {padded}, x.shape);
  const TensorView part = chain.run(Kernel::scale, "alpha", {mean}, x.shape);
  const TensorView narrow = chain.run(Kernel::scale, "k", {part}, x.shape, {mean.storage});
  const TensorView sum = lowering.cast(narrow, lowering.output_type().type, "power.input.cast");
  const TensorView power =
      chain.run(Kernel::unary_forward, "power", {sum}, x.shape, {mean.storage, narrow.storage});
  lowering.emit(Kernel::divide, "forward", {x, power}, {lowering.new_output_like(x)},
                {.flops = element_count(x.shape)});
  lowering.save("input", x);
  lowering.save("padded", padded);
  lowering.save("sum", sum);
  lowering.save("power", power);
}

void backward_local_response_norm_pytorch(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView x = lowering.saved("input");
  const TensorView sum = lowering.saved("sum");
  const TensorView power = lowering.saved("power");
  const TensorView padded = lowering.saved("padded");
  const TensorView dy = lowering.output_gradient();
  Chain chain(lowering);
  chain.in_backward();
  const auto run = [&](Kernel kernel, std::string_view suffix, std::vector<TensorView> reads,
                       std::vector<StorageId> holds = {}) {
    return chain.run(kernel, suffix, std::move(reads), x.shape, std::move(holds));
  };
  // x / power: the divisor's gradient -dy (x / power / power) first, then dy / power.
  const TensorView quotient = run(Kernel::divide, "backward.quotient", {x, power});
  const TensorView ratio = run(Kernel::divide, "backward.ratio", {quotient, power});
  const TensorView negative = run(Kernel::scale, "backward.negative", {dy}, {});
  const TensorView grad_power =
      run(Kernel::multiply, "backward.divisor", {negative, ratio}, {quotient.storage});
  const TensorView direct = run(Kernel::divide, "backward.dividend", {dy, power});
  lowering.give_input_gradient(0, lowering.cast(direct, x.type, "backward.dividend.cast"));
  // sum ^ beta
  const TensorView root = run(Kernel::unary_forward, "backward.root", {sum});
  const TensorView slope = run(Kernel::scale, "backward.slope", {root});
  const TensorView grad_power_input =
      run(Kernel::multiply, "backward.power", {grad_power, slope}, {root.storage, sum.storage});
  const TensorView grad_sum = lowering.cast(grad_power_input, x.type, "backward.power.cast");
  // k + alpha * mean of the padded squares
  const TensorView grad_mean = run(Kernel::scale, "backward.alpha", {grad_sum});
  const TensorView grad_padded = chain.run(Kernel::avg_pool_backward, "backward.mean", {grad_mean},
                                           padded.shape, {padded.storage});
  const TensorView grad_square = run(Kernel::pad_backward, "backward.pad", {grad_padded});
  // x * x: a gradient for each factor
  const TensorView left = run(Kernel::multiply, "backward.left", {grad_square, x});
  const TensorView right = run(Kernel::multiply, "backward.right", {grad_square, x});
  lowering.give_input_gradient(0, left);
  lowering.give_input_gradient(0, right);
}

// Our executor.

void forward_local_response_norm_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const TensorView y = lowering.new_output();
  const TensorView scale =
      lowering.new_tensor("scale", x.shape, x.type, StorageClass::saved_auxiliary);
  const std::int64_t size = lowering.attributes().integer("size");
  lowering.emit(Kernel::local_response_norm_forward, "forward", {x}, {y, scale},
                {.flops = element_count(x.shape) * Affine(size + 5)});
  lowering.save("input", x);
  lowering.save("result", y);
  lowering.save("scale", scale);
}

void backward_local_response_norm_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dx = lowering.new_input_gradient();
  const std::int64_t size = lowering.attributes().integer("size");
  lowering.emit(Kernel::local_response_norm_backward, "backward",
                {x, lowering.saved("result"), lowering.saved("scale"), lowering.output_gradient()},
                {dx}, {.flops = element_count(x.shape) * Affine(2 * (size + 5))});
  lowering.give_input_gradient(0, dx);
}

AttributeSpec response_norm_real(std::string_view name, std::string_view doc, double value) {
  return {.name = name, .type = AttributeType::real, .doc = doc, .default_value = value};
}

}  // namespace

OperatorRow rows::local_response_norm() {
  return {.name = "local_response_norm",
          .doc = "division by a power of the mean square over neighbouring channels",
          .attributes = {{.name = "size",
                          .type = AttributeType::integer,
                          .doc = "how many channels",
                          .minimum = 1,
                          .maximum = 1 << 20},
                         response_norm_real("alpha", "weight of the mean square", 1e-4),
                         response_norm_real("beta", "the power", 0.75),
                         response_norm_real("k", "added to the mean square", 1)},
          .infer = infer_local_response_norm,
          .lowering = {.stowage = {forward_local_response_norm_stowage,
                                   backward_local_response_norm_stowage},
                       .pytorch = {forward_local_response_norm_pytorch,
                                   backward_local_response_norm_pytorch, true}},
          .autocast = AutocastClass::float32};
}

}  // namespace stowage
