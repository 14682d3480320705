// cross_entropy (mean over targets, class axis 1) and mse (mean over elements).
// PyTorch's cross_entropy is log_softmax, which saves its result, then nll_loss, which saves that
// result and the target; backward makes the gradient of each. Our executor fuses the two and saves
// one log-sum-exp a target.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_cross_entropy(const Attributes&,
                                                            std::span<const TensorType> inputs) {
  const TensorType& logits = inputs[0];
  const TensorType& target = inputs[1];
  if (auto error = want_floating(logits)) return tl::unexpected(*error);
  if (logits.shape.size() < 2) {
    return refuse(fmt::format("wants [batch, classes, ...], but its input has shape {}",
                              to_string(logits.shape)),
                  {}, 0);
  }
  Shape wanted = logits.shape;
  wanted.erase(wanted.begin() + 1);
  if (target.shape != wanted || target.type != DataType::int64) {
    return refuse(
        fmt::format("logits {} want an int64 target {}, but it is {} {}", to_string(logits.shape),
                    to_string(wanted), to_string(target.type), to_string(target.shape)),
        {}, 1);
  }
  Inference result;
  result.outputs = {{{}, logits.type}};
  result.flops = element_count(logits.shape) * Affine(6);
  return result;
}

Attributes gradient_scale(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("scale", 1.0 / lowering.micro_batches());
  return attributes;
}

// loss.backward() starts from a one.
TensorView emit_first_gradient(OperatorLowering& lowering) {
  const TensorView one = lowering.new_tensor("grad", {}, lowering.output_type().type,
                                             StorageClass::activation_gradient);
  Attributes value;
  value.set("value", 1.0);
  lowering.emit(Kernel::fill, "grad", {}, {one}, {.attributes = value});
  lowering.keep_through_backward(one);
  return one;
}

void forward_two_kernels(OperatorLowering& lowering) {
  const TensorView logits = lowering.contiguous(lowering.input(0), "input.contiguous");
  const TensorView target = lowering.contiguous(lowering.input(1), "target.contiguous");
  const TensorView logp =
      lowering.new_tensor("log_probabilities", logits.shape, logits.type, StorageClass::activation);
  lowering.emit(Kernel::log_softmax_forward, "log_softmax", {logits}, {logp},
                {.flops = element_count(logits.shape) * Affine(5)});
  const TensorView loss = lowering.new_output();
  const TensorView total =
      lowering.new_tensor("total_weight", {}, logits.type, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::nll_loss_forward, "nll_loss", {logp, target}, {loss, total},
                {.flops = element_count(target.shape)});
  lowering.save("result", logp);
  lowering.save("target", target);
  lowering.save("total_weight", total);
}

void backward_two_kernels(OperatorLowering& lowering) {
  lowering.hold_by_hand();  // two autograd nodes; each kernel reads all that its node holds
  const TensorView logp = lowering.saved("result");
  const TensorView one = emit_first_gradient(lowering);
  const TensorView d_logp = lowering.new_tensor("grad_log_probabilities", logp.shape, logp.type,
                                                StorageClass::activation_gradient);
  lowering.emit(Kernel::nll_loss_backward, "backward.nll_loss",
                {one, logp, lowering.saved("target"), lowering.saved("total_weight")}, {d_logp},
                {.flops = element_count(logp.shape)});
  const TensorView dx = lowering.new_input_gradient(0);
  lowering.emit(Kernel::log_softmax_backward, "backward.log_softmax", {logp, d_logp}, {dx},
                {.flops = element_count(logp.shape) * Affine(3)});
  lowering.give_input_gradient(0, dx);
}

void forward_fused(OperatorLowering& lowering) {
  const TensorView logits = lowering.input(0);
  const TensorView target = lowering.input(1);
  const TensorView loss = lowering.new_output();
  const TensorView sums = lowering.new_tensor("logsumexp", target.shape, DataType::float32,
                                              StorageClass::saved_auxiliary);
  lowering.emit(Kernel::cross_entropy_forward, "forward", {logits, target}, {loss, sums},
                {.flops = element_count(logits.shape) * Affine(5)});
  lowering.save("input", logits);
  lowering.save("target", target);
  lowering.save("logsumexp", sums);
}

void backward_fused(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient(0);
  lowering.emit(
      Kernel::cross_entropy_backward, "backward",
      {lowering.saved("input"), lowering.saved("target"), lowering.saved("logsumexp")}, {dx},
      {.attributes = gradient_scale(lowering), .flops = element_count(dx.shape) * Affine(4)});
  lowering.give_input_gradient(0, dx);
}

tl::expected<Inference, InferenceError> infer_mse(const Attributes&,
                                                  std::span<const TensorType> inputs) {
  if (auto error = want_floating(inputs[0], 0)) return tl::unexpected(*error);
  if (inputs[0] != inputs[1]) {
    return refuse(fmt::format("its inputs are {} {} and {} {}", to_string(inputs[0].type),
                              to_string(inputs[0].shape), to_string(inputs[1].type),
                              to_string(inputs[1].shape)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {{{}, inputs[0].type}};
  result.flops = element_count(inputs[0].shape) * Affine(3);
  return result;
}

void forward_mse(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(0), "input.contiguous");
  const TensorView target = lowering.contiguous(lowering.input(1), "target.contiguous");
  lowering.emit(Kernel::mse_forward, "forward", {x, target}, {lowering.new_output()},
                {.flops = element_count(x.shape) * Affine(3)});
  lowering.save("input", x);
  lowering.save("target", target);
}

// The mean of (x - target)^2 is symmetric: the target's gradient, where it has one, is the input's
// with the two exchanged.
void backward_mse(OperatorLowering& lowering) {
  const std::array<TensorView, 2> values{lowering.saved("input"), lowering.saved("target")};
  std::optional<TensorView> one;
  if (lowering.pytorch()) one = emit_first_gradient(lowering);
  for (int i = 0; i < 2; ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    std::vector<TensorView> reads{values[static_cast<std::size_t>(i)],
                                  values[static_cast<std::size_t>(1 - i)]};
    if (one) reads.push_back(*one);
    const TensorView dx = lowering.new_input_gradient(i);
    lowering.emit(
        Kernel::mse_backward, i == 0 ? "backward" : "backward.target", reads, {dx},
        {.attributes = gradient_scale(lowering), .flops = element_count(dx.shape) * Affine(3)});
    lowering.give_input_gradient(i, dx);
  }
}

}  // namespace

OperatorRow rows::cross_entropy() {
  return {.name = "cross_entropy",
          .doc = "mean cross entropy of logits [batch, classes, ...] and int64 targets",
          .attributes = {{.name = "ignore_index",
                          .type = AttributeType::integer,
                          .doc = "a target that does not count",
                          .default_value = std::int64_t{-100}}},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_cross_entropy,
          .lowering = {LoweringRules{forward_two_kernels, backward_two_kernels},
                       LoweringRules{forward_fused, backward_fused}},
          .is_loss = true,
          .autocast = AutocastClass::float32};
}

OperatorRow rows::mse() {
  return {.name = "mse",
          .doc = "mean squared error of two tensors",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_mse,
          .lowering = {LoweringRules{forward_mse, backward_mse},
                       LoweringRules{forward_mse, backward_mse}},
          .is_loss = true,
          .autocast = AutocastClass::float32};
}

}  // namespace stowage
