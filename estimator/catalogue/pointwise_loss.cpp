// Losses that compare a tensor with a target of its shape, element by element, averaged: mse, l1,
// bce, bce_with_logits, kl_div. Our executor runs each as one kernel, which saves both. In PyTorch
// so do mse and bce; l1 is a difference, its absolute value and a mean, which save the difference;
// kl_div is two products, a difference and a mean, which save the target; bce_with_logits has a
// backward written in operators. A target gets a gradient from mse and l1 only.
#include <fmt/format.h>

#include <array>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/loss.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

template <std::int64_t flops>
tl::expected<Inference, InferenceError> infer_pointwise_loss(const Attributes&,
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
  result.flops = element_count(inputs[0].shape) * Affine(flops);
  return result;
}

Attributes of_logits(const OperatorLowering& lowering, Attributes attributes = {}) {
  attributes.set("logits", lowering.op().row->name == "bce_with_logits");
  return attributes;
}

constexpr std::int64_t loss_flops = 3;  // an element

// One kernel over both tensors, which are saved.
template <Kernel kernel>
void forward_one(OperatorLowering& lowering) {
  const TensorView x = lowering.input(0);
  const TensorView target = lowering.input(1);
  const TensorView loss = new_loss(lowering);
  lowering.emit(
      kernel, "forward", {x, target}, {loss},
      {.attributes = of_logits(lowering), .flops = element_count(x.shape) * Affine(loss_flops)});
  lowering.save("self", x);
  lowering.save("target", target);
  finish_loss(lowering, loss);
}

// For the mean of a symmetric function, the target's gradient (if it needs one) is the input's with
// the two exchanged.
/// `gradient`: the gradient of the loss, if the kernel set has one. `temporary`: the name of a
/// temporary of dx's size; "": none.
template <Kernel kernel>
void emit_gradients(OperatorLowering& lowering, const std::vector<TensorView>& gradient,
                    std::string_view temporary) {
  const std::array<TensorView, 2> values{lowering.saved("self"), lowering.saved("target")};
  const bool symmetric = kernel == Kernel::mse_backward || kernel == Kernel::l1_backward;
  for (int i = 0; i < (symmetric ? 2 : 1); ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    const auto at = static_cast<std::size_t>(i);
    std::vector<TensorView> reads{values[at], values[1 - at]};
    reads.insert(reads.end(), gradient.begin(), gradient.end());
    // mse_loss_backward makes zeros of the input's size (ATen/native/Loss.cpp).
    const TensorView made = lowering.new_input_gradient(i);
    const TensorView dx = kernel == Kernel::mse_backward ? made : ordered_like(made, values[at]);
    std::vector<StorageId> temporaries;
    if (!temporary.empty()) {
      temporaries.push_back(lowering.new_temporary(temporary, byte_count(dx)));
    }
    lowering.emit(kernel, i == 0 ? "backward" : "backward.target", reads, {dx},
                  {.attributes = of_logits(lowering, gradient_scale(lowering)),
                   .temporaries = std::move(temporaries),
                   .flops = element_count(dx.shape) * Affine(loss_flops)});
    lowering.give_input_gradient(i, dx);
  }
}

template <Kernel kernel>
void backward_pointwise_loss_stowage(OperatorLowering& lowering) {
  emit_gradients<kernel>(lowering, {}, "");
}

template <Kernel kernel>
void backward_pointwise_loss_pytorch(OperatorLowering& lowering) {
  emit_gradients<kernel>(lowering, {loss_gradient(lowering)}, "");
}

void backward_logits_pytorch(OperatorLowering& lowering) {
  emit_gradients<Kernel::bce_backward>(lowering, {loss_gradient(lowering)}, "sigmoid");
}

template <Kernel forward, Kernel backward>
constexpr LoweringRules stowage_rules{forward_one<forward>,
                                      backward_pointwise_loss_stowage<backward>};
template <Kernel forward, Kernel backward>
constexpr LoweringRules pytorch_rules{forward_one<forward>,
                                      backward_pointwise_loss_pytorch<backward>};

// Makes an intermediate tensor of the input's shape, and emits its kernel.
TensorView loss_step(OperatorLowering& lowering, Kernel kernel, std::string_view name,
                     std::vector<TensorView> reads, std::vector<StorageId> temporaries = {},
                     StorageClass storage_class = StorageClass::activation) {
  const TensorView x = lowering.input(0);
  const TensorView result =
      ordered_like(lowering.new_tensor(name, x.shape, x.type, storage_class), x);
  lowering.emit(kernel, name, std::move(reads), {result},
                {.temporaries = std::move(temporaries), .flops = element_count(x.shape)});
  return result;
}

TensorView gradient_step(OperatorLowering& lowering, Kernel kernel, std::string_view name,
                         std::vector<TensorView> reads, std::vector<StorageId> temporaries = {}) {
  return loss_step(lowering, kernel, name, std::move(reads), std::move(temporaries),
                   StorageClass::activation_gradient);
}

void emit_mean(OperatorLowering& lowering, const TensorView& terms) {
  const TensorView loss = new_loss(lowering);
  lowering.emit(Kernel::reduce, "forward", {terms}, {loss},
                {.holds = {lowering.input(0).storage, lowering.input(1).storage},
                 .flops = element_count(terms.shape)});
  finish_loss(lowering, loss);
}

void forward_l1(OperatorLowering& lowering) {
  const TensorView difference =
      loss_step(lowering, Kernel::subtract, "difference", {lowering.input(0), lowering.input(1)});
  lowering.save("self", difference);
  emit_mean(lowering, loss_step(lowering, Kernel::unary_forward, "absolute", {difference}));
}

void backward_l1(OperatorLowering& lowering) {
  const TensorView difference = lowering.saved("self");
  const TensorView each =
      gradient_step(lowering, Kernel::expand, "backward.mean", {loss_gradient(lowering)});
  const TensorView gradient =
      gradient_step(lowering, Kernel::multiply, "grad_input", {difference, each},
                    {lowering.new_temporary("sign", byte_count(difference))});
  if (lowering.input_needs_gradient(0)) lowering.give_input_gradient(0, gradient);
  if (!lowering.input_needs_gradient(1)) return;
  lowering.give_input_gradient(1,
                               gradient_step(lowering, Kernel::scale, "grad_target", {gradient}));
}

void forward_kl_div(OperatorLowering& lowering) {
  const TensorView target = lowering.input(1);
  const TensorView cross =
      loss_step(lowering, Kernel::multiply, "cross", {target, lowering.input(0)});
  const TensorView entropy = loss_step(lowering, Kernel::multiply, "entropy", {target});
  lowering.save("target", target);
  emit_mean(lowering, loss_step(lowering, Kernel::subtract, "difference", {entropy, cross}));
}

void backward_kl_div(OperatorLowering& lowering) {
  const bool whole = lowering.attributes().text("reduction") == "mean";
  TensorView each = loss_gradient(lowering);
  if (whole) each = gradient_step(lowering, Kernel::expand, "backward.mean", {each});
  const TensorView negated = gradient_step(lowering, Kernel::scale, "grad_cross", {each});
  lowering.give_input_gradient(0, gradient_step(lowering, Kernel::multiply, "grad_input",
                                                {negated, lowering.saved("target")}));
}

OperatorRow pointwise_loss_row(std::string_view name, std::string_view doc,
                               const RulesBySet& rules) {
  return {.name = name,
          .doc = doc,
          .attributes = {weight_attribute()},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_pointwise_loss<loss_flops>,
          .lowering = rules,
          .is_loss = true,
          .autocast = AutocastClass::float32};
}

}  // namespace

OperatorRow rows::mse() {
  return pointwise_loss_row("mse", "mean squared error of two tensors",
                            {.stowage = stowage_rules<Kernel::mse_forward, Kernel::mse_backward>,
                             .pytorch = pytorch_rules<Kernel::mse_forward, Kernel::mse_backward>});
}

OperatorRow rows::l1() {
  return pointwise_loss_row("l1", "mean absolute error of two tensors",
                            {.stowage = stowage_rules<Kernel::l1_forward, Kernel::l1_backward>,
                             .pytorch = {forward_l1, backward_l1}});
}

OperatorRow rows::bce() {
  OperatorRow result =
      pointwise_loss_row("bce", "mean binary cross entropy of probabilities and targets",
                         {.stowage = stowage_rules<Kernel::bce_forward, Kernel::bce_backward>,
                          .pytorch = pytorch_rules<Kernel::bce_forward, Kernel::bce_backward>});
  result.autocast = AutocastClass::as_is;  // PyTorch refuses it under autocast
  return result;
}

OperatorRow rows::bce_with_logits() {
  return pointwise_loss_row(
      "bce_with_logits", "mean binary cross entropy of logits and targets",
      {.stowage = stowage_rules<Kernel::bce_forward, Kernel::bce_backward>,
       .pytorch = {forward_one<Kernel::bce_forward>, backward_logits_pytorch}});
}

OperatorRow rows::kl_div() {
  OperatorRow result = pointwise_loss_row(
      "kl_div", "mean Kullback-Leibler divergence of log-probabilities from target probabilities",
      {.stowage = stowage_rules<Kernel::kl_div_forward, Kernel::kl_div_backward>,
       .pytorch = {forward_kl_div, backward_kl_div}});
  result.attributes.insert(result.attributes.begin(),
                           {.name = "reduction",
                            .type = AttributeType::choice,
                            .doc = "over all elements, or over the first axis alone",
                            .default_value = std::string("mean"),
                            .choices = {"mean", "batchmean"}});
  return result;
}

}  // namespace stowage
