// rms_norm: division by the root of the mean square over trailing axes (Zhang and Sennrich, 2019).
//
// PyTorch has two: torch.nn.RMSNorm, whose fused kernel saves the input and one statistic, and what
// the language models of transformers 5.23 write in operators (LlamaRMSNorm.forward): to float32,
// pow, mean, add, rsqrt, mul, back, mul by the weight, each with its own backward. The second is
// lowered operator by operator, with autograd's lifetimes. T5LayerNorm.forward differs in 16 bits:
// what it multiplies is not the float32 copy but the input, which is saved besides.
// GemmaRMSNorm.forward multiplies by 1 + weight, a tensor of its own, in float32, and converts
// last; GptOssRMSNorm.forward does so by the weight. Our executor runs all of them as one kernel.
#include <fmt/format.h>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/normalization.hpp"
#include "estimator/catalogue/rms_norm_composite.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t rms_norm_flops = 5;

tl::expected<Inference, InferenceError> infer_rms_norm(const Attributes& attributes,
                                                       std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  const auto normalized = normalized_axes(attributes, x);
  if (!normalized) return tl::unexpected(normalized.error());
  Inference result;
  result.outputs = {x};
  if (!attributes.has("affine") || attributes.boolean("affine")) {
    result.parameters.push_back({.name = "weight", .shape = *normalized, .type = x.type});
  }
  result.flops = element_count(x.shape) * Affine(rms_norm_flops);
  return result;
}

bool is_composite_rms_norm(const OperatorLowering& lowering) {
  return lowering.attributes().text("implementation") != "fused";
}

// One kernel.

void forward_rms_norm_fused(OperatorLowering& lowering) {
  const TensorView x = input_view(lowering, Kernel::rms_norm_forward);
  std::vector<TensorView> reads{x};
  if (has_rms_norm_scale(lowering)) reads.push_back(lowering.parameter(0));
  const TensorView y = lowering.new_output();
  const TensorView rstd =
      lowering.new_tensor("rstd", rms_norm_statistics_shape(lowering, x), statistics_type(x.type),
                          StorageClass::saved_auxiliary);
  lowering.emit(Kernel::rms_norm_forward, "forward", reads, {y, rstd},
                {.flops = element_count(x.shape) * Affine(rms_norm_flops)});
  lowering.save("input", lowering.input());
  if (has_rms_norm_scale(lowering)) lowering.save("weight", lowering.parameter(0));
  lowering.save("rstd", rstd);
}

template <MakeGradients make>
void backward_rms_norm_fused(OperatorLowering& lowering) {
  const TensorView x =
      argument_view(lowering, Kernel::rms_norm_backward, 0, lowering.saved("input"),
                    lowering.saved("input"), "backward.input");
  const TensorView dy = argument_view(lowering, Kernel::rms_norm_backward, 1,
                                      lowering.output_gradient(), x, "grad.contiguous");
  const TensorView dx = lowering.new_input_gradient();
  std::vector<TensorView> reads{x, dy};
  if (has_rms_norm_scale(lowering)) reads.push_back(lowering.parameter(0));
  reads.push_back(lowering.saved("rstd"));
  const std::vector<TensorView> gradients = make(lowering);
  std::vector<TensorView> writes{dx};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  lowering.emit(Kernel::rms_norm_backward, "backward", reads, writes,
                {.flops = element_count(x.shape) * Affine(2 * rms_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, gradients);
}

void forward_rms_norm_pytorch(OperatorLowering& lowering) {
  if (is_composite_rms_norm(lowering))
    forward_rms_norm_composite(lowering);
  else
    forward_rms_norm_fused(lowering);
}

void backward_rms_norm_pytorch(OperatorLowering& lowering) {
  if (is_composite_rms_norm(lowering))
    backward_rms_norm_composite(lowering);
  else
    backward_rms_norm_fused<wanted_affine_gradients>(lowering);
}

// Gemma's as one kernel of 1 + weight, which lives to its end.

TensorView one_plus(OperatorLowering& lowering, std::string_view name) {
  const TensorView weight = lowering.parameter(0);
  TensorView factor =
      lowering.new_tensor(name, weight.shape, weight.type, StorageClass::activation);
  Attributes attributes;
  attributes.set("factor", 1.0);
  attributes.set("offset", 1.0);
  lowering.emit(Kernel::scale, name, {weight}, {factor}, {.attributes = attributes});
  return factor;
}

void forward_rms_norm_plus_one(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView factor = one_plus(lowering, "factor");
  const TensorView rstd =
      lowering.new_tensor("rstd", rms_norm_statistics_shape(lowering, x), statistics_type(x.type),
                          StorageClass::saved_auxiliary);
  lowering.emit(Kernel::rms_norm_forward, "forward", {x, factor}, {lowering.new_output(), rstd},
                {.flops = element_count(x.shape) * Affine(rms_norm_flops)});
  lowering.save("input", x);
  lowering.save("rstd", rstd);
}

void backward_rms_norm_plus_one(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView factor = one_plus(lowering, "backward.factor");
  const TensorView dx = lowering.new_input_gradient();
  const std::vector<TensorView> gradients = all_affine_gradients(lowering);
  std::vector<TensorView> writes{dx};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  lowering.emit(Kernel::rms_norm_backward, "backward",
                {x, lowering.output_gradient(), factor, lowering.saved("rstd")}, writes,
                {.flops = element_count(x.shape) * Affine(2 * rms_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, gradients);
}

// The wide norm as one kernel, which reads the weight in its own format.

void forward_rms_norm_wide(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView rstd =
      lowering.new_tensor("rstd", rms_norm_statistics_shape(lowering, x), statistics_type(x.type),
                          StorageClass::saved_auxiliary);
  lowering.emit(Kernel::rms_norm_forward, "forward", {x, lowering.parameter(0)},
                {lowering.new_output(), rstd},
                {.flops = element_count(x.shape) * Affine(rms_norm_flops)});
  lowering.save("input", x);
  lowering.save("rstd", rstd);
}

void backward_rms_norm_wide(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dx = lowering.new_input_gradient();
  const std::vector<TensorView> gradients = all_affine_gradients(lowering);
  std::vector<TensorView> writes{dx};
  writes.insert(writes.end(), gradients.begin(), gradients.end());
  lowering.emit(Kernel::rms_norm_backward, "backward",
                {x, lowering.output_gradient(), lowering.parameter(0), lowering.saved("rstd")},
                writes, {.flops = element_count(x.shape) * Affine(2 * rms_norm_flops)});
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  give_affine_gradients(lowering, gradients);
}

/// Written in operators, what is multiplied is of no class.
AutocastClass rms_norm_autocast(const Attributes& attributes) {
  return attributes.text("implementation") == "fused" ? AutocastClass::float32
                                                      : AutocastClass::as_is;
}

AttributeSpec mean_square_eps() {
  return {.name = "eps",
          .type = AttributeType::real,
          .doc = "added to the mean square",
          .default_value = 1e-6,
          .minimum = 0};
}

}  // namespace

OperatorRow rows::rms_norm() {
  return {.name = "rms_norm",
          .doc = "division by the root mean square over the last axes",
          .attributes = {normalized_axes_attribute(),
                         mean_square_eps(),
                         {.name = "affine",
                          .type = AttributeType::boolean,
                          .doc = "learned scale",
                          .default_value = true},
                         {.name = "implementation",
                          .type = AttributeType::choice,
                          .doc = "PyTorch's kernel, or written in operators as in transformers' "
                                 "LLaMA or T5",
                          .default_value = std::string("fused"),
                          .choices = {"fused", "composite", "composite_t5"}}},
          .infer = infer_rms_norm,
          .lowering = {.stowage = {forward_rms_norm_fused,
                                   backward_rms_norm_fused<all_affine_gradients>},
                       .pytorch = {forward_rms_norm_pytorch, backward_rms_norm_pytorch}},
          .autocast = AutocastClass::float32,
          .autocast_by_attributes = rms_norm_autocast,
          .promotes_with_parameters = true};
}

OperatorRow rows::rms_norm_wide() {
  return {.name = "rms_norm_wide",
          .doc =
              "rms_norm whose product with its weight is in float32 and converted last, as "
              "gpt-oss has it",
          .attributes = {normalized_axes_attribute(), mean_square_eps()},
          .infer = infer_rms_norm,
          .lowering = {.stowage = {forward_rms_norm_wide, backward_rms_norm_wide},
                       .pytorch = {forward_rms_norm_composite, backward_rms_norm_composite}}};
}

OperatorRow rows::rms_norm_plus_one() {
  return {.name = "rms_norm_plus_one",
          .doc = "rms_norm with a factor of 1 + a learned one, as Gemma has it",
          .attributes = {normalized_axes_attribute(), mean_square_eps()},
          .infer = infer_rms_norm,
          .lowering = {.stowage = {forward_rms_norm_plus_one, backward_rms_norm_plus_one},
                       .pytorch = {forward_rms_norm_composite, backward_rms_norm_composite}}};
}

}  // namespace stowage
