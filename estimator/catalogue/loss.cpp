// cross_entropy and nll: means over targets, class axis 1.
// PyTorch's cross_entropy is log_softmax, which saves its result, then nll_loss, which saves that
// result and the target; backward makes the gradient of each. Under autocast the first of the two
// runs in the format of the logits (cross_entropy_loss passes it on explicitly), the second in
// float32, and both results are kept. Our executor fuses the two and saves one log-sum-exp a
// target. So does torch.compile, where the loss alone is compiled: its kernels read
// the logits as they are, save the maximum and the logarithm of each row, and make a gradient of
// the logits' format (tests/reference/compiled_loss.py).
#include "estimator/catalogue/loss.hpp"

#include <fmt/format.h>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/fine_tuning_rows.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_cross_entropy(const Attributes& attributes,
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
  const bool upcast = attributes.has("upcast") && attributes.boolean("upcast");
  Inference result;
  result.outputs = {{{}, upcast ? DataType::float32 : logits.type}};
  result.flops = element_count(logits.shape) * Affine(6);
  return result;
}

bool is_smoothed(const OperatorLowering& lowering) {
  return lowering.attributes().real("label_smoothing") > 0;
}

void forward_loss_fused(OperatorLowering& lowering) {
  const TensorView logits = lowering.input(0);
  const TensorView target = lowering.input(1);
  const TensorView loss = new_loss(lowering);
  const TensorView sums = lowering.new_tensor(
      "logsumexp", target.shape, statistics_type(logits.type), StorageClass::saved_auxiliary);
  lowering.emit(Kernel::cross_entropy_forward, "forward", {logits, target}, {loss, sums},
                {.flops = element_count(logits.shape) * Affine(5)});
  lowering.save("input", logits);
  lowering.save("target", target);
  lowering.save("logsumexp", sums);
  finish_loss(lowering, loss);
}

void backward_loss_fused(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient(0);
  lowering.emit(
      Kernel::cross_entropy_backward, "backward",
      {lowering.saved("input"), lowering.saved("target"), lowering.saved("logsumexp")}, {dx},
      {.attributes = gradient_scale(lowering), .flops = element_count(dx.shape) * Affine(4)});
  lowering.give_input_gradient(0, dx);
}

void forward_compiled(OperatorLowering& lowering) {
  const TensorView logits = lowering.input(0);
  const TensorView maxima = lowering.new_tensor("amax", lowering.input(1).shape, DataType::float32,
                                                StorageClass::saved_auxiliary);
  lowering.emit(Kernel::reduce, "amax", {logits}, {maxima}, {.flops = element_count(logits.shape)});
  lowering.save("amax", maxima);
  forward_loss_fused(lowering);
}

void forward_two_kernels(OperatorLowering& lowering) {
  if (is_smoothed(lowering)) return forward_smoothed_cross_entropy(lowering);
  const TensorView given = input_view(lowering, Kernel::log_softmax_forward);
  const TensorView target = lowering.contiguous(lowering.input(1), "target.contiguous");
  const DataType loss_type = lowering.output_type().type;
  const bool upcast = lowering.attributes().boolean("upcast");
  const TensorView logits = upcast ? lowering.cast(given, loss_type, "input.cast") : given;
  TensorView logp =
      lowering.new_tensor("log_probabilities", logits.shape, logits.type, StorageClass::activation);
  lowering.emit(Kernel::log_softmax_forward, "log_softmax", {logits}, {logp},
                {.flops = element_count(logits.shape) * Affine(5)});
  lowering.save("result", logp);
  logp = lowering.cast(logp, loss_type, "log_probabilities.cast");
  const TensorView loss = new_loss(lowering);
  const TensorView total =
      lowering.new_tensor("total_weight", {}, loss_type, StorageClass::saved_auxiliary);
  std::vector<StorageId> holds;  // transformers keeps the converted logits in a variable
  if (logits.storage != given.storage) holds.push_back(logits.storage);
  lowering.emit(Kernel::nll_loss_forward, "nll_loss", {logp, target}, {loss, total},
                {.holds = holds, .flops = element_count(target.shape)});
  lowering.save("self", logp);
  lowering.save("target", target);
  lowering.save("total_weight", total);
  finish_loss(lowering, loss);
}

void backward_two_kernels(OperatorLowering& lowering) {
  if (is_smoothed(lowering)) return backward_smoothed_cross_entropy(lowering);
  lowering.hold_by_hand();  // two autograd nodes; each kernel reads all that its node holds
  const TensorView result = lowering.saved("result");
  const TensorView logp = lowering.saved("self");
  const TensorView one = loss_gradient(lowering);
  const TensorView d_logp = lowering.new_tensor("grad_log_probabilities", logp.shape, logp.type,
                                                StorageClass::activation_gradient);
  lowering.emit(Kernel::nll_loss_backward, "backward.nll_loss",
                {one, logp, lowering.saved("target"), lowering.saved("total_weight")}, {d_logp},
                {.flops = element_count(logp.shape)});
  const TensorView d_result = lowering.cast(d_logp, result.type, "grad_log_probabilities.cast");
  const TensorView dx = lowering.new_tensor("grad_logits", result.shape, result.type,
                                            StorageClass::activation_gradient);
  lowering.emit(Kernel::log_softmax_backward, "backward.log_softmax", {result, d_result}, {dx},
                {.flops = element_count(logp.shape) * Affine(3)});
  lowering.give_input_gradient(0, dx);
}

struct NllArguments {
  TensorView logp, target, loss;
};

NllArguments nll_arguments(OperatorLowering& lowering) {
  return {input_view(lowering, Kernel::nll_loss_forward),
          lowering.contiguous(lowering.input(1), "target.contiguous"), new_loss(lowering)};
}

/// `writes`: the loss and the other results of the kernel set's kernel.
void emit_nll(OperatorLowering& lowering, const NllArguments& in,
              const std::vector<TensorView>& writes) {
  lowering.emit(Kernel::nll_loss_forward, "forward", {in.logp, in.target}, writes,
                {.flops = element_count(in.target.shape)});
  lowering.save("self", lowering.input(0));
  lowering.save("target", in.target);
}

void forward_nll_stowage(OperatorLowering& lowering) {
  const NllArguments in = nll_arguments(lowering);
  emit_nll(lowering, in, {in.loss});
  finish_loss(lowering, in.loss);
}

void forward_nll_pytorch(OperatorLowering& lowering) {
  const NllArguments in = nll_arguments(lowering);
  const TensorView total =
      lowering.new_tensor("total_weight", {}, in.logp.type, StorageClass::saved_auxiliary);
  emit_nll(lowering, in, {in.loss, total});
  lowering.save("total_weight", total);
  finish_loss(lowering, in.loss);
}

void emit_nll_gradient(OperatorLowering& lowering, const std::vector<TensorView>& reads) {
  const TensorView dx = lowering.new_input_gradient(0);
  lowering.emit(Kernel::nll_loss_backward, "backward", reads, {dx},
                {.attributes = gradient_scale(lowering), .flops = element_count(dx.shape)});
  lowering.give_input_gradient(0, dx);
}

void backward_nll_stowage(OperatorLowering& lowering) {
  emit_nll_gradient(lowering, {lowering.saved("self"), lowering.saved("target")});
}

void backward_nll_pytorch(OperatorLowering& lowering) {
  const TensorView gradient = loss_gradient(lowering);
  emit_nll_gradient(lowering, {gradient, lowering.saved("self"), lowering.saved("target"),
                               lowering.saved("total_weight")});
}

AttributeSpec ignore_attribute() {
  return {.name = "ignore_index",
          .type = AttributeType::integer,
          .doc = "a target that does not count",
          .default_value = std::int64_t{-100}};
}

}  // namespace

OperatorRow rows::cross_entropy() {
  return {.name = "cross_entropy",
          .doc = "mean cross entropy of logits [batch, classes, ...] and int64 targets",
          .attributes = {ignore_attribute(),
                         {.name = "label_smoothing",
                          .type = AttributeType::real,
                          .doc = "share of the target that all classes divide evenly",
                          .default_value = 0.0,
                          .minimum = 0,
                          .maximum = 1},
                         {.name = "upcast",
                          .type = AttributeType::boolean,
                          .doc = "the logits are made float32 first, as in transformers",
                          .default_value = false},
                         weight_attribute()},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_cross_entropy,
          .lowering = {.stowage = {forward_loss_fused, backward_loss_fused},
                       .pytorch = {forward_two_kernels, backward_two_kernels, true}},
          .is_loss = true,
          .autocast = AutocastClass::float32};
}

OperatorRow rows::nll() {
  return {.name = "nll",
          .doc =
              "mean negative log-likelihood of log-probabilities [batch, classes, ...] and int64 "
              "targets",
          .attributes = {ignore_attribute(), weight_attribute()},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_cross_entropy,
          .lowering = {.stowage = {forward_nll_stowage, backward_nll_stowage},
                       .pytorch = {forward_nll_pytorch, backward_nll_pytorch}},
          .is_loss = true,
          .autocast = AutocastClass::float32};
}

const OperatorRow& compiled_cross_entropy_row() {
  static const OperatorRow row = [] {
    OperatorRow compiled = rows::cross_entropy();
    compiled.name = "compiled_cross_entropy";
    compiled.doc = "cross_entropy, compiled by itself: PyTorch runs it without float32 logits";
    compiled.lowering = {.stowage = {forward_loss_fused, backward_loss_fused},
                         .pytorch = {forward_compiled, backward_loss_fused}};
    return compiled;
  }();
  return row;
}

}  // namespace stowage
