// max_pool2d, avg_pool2d and adaptive_avg_pool2d over [batch, channels, height, width].
// PyTorch's max pooling saves its input and int64 indices; our executor finds the maxima again from
// the input and the output, as cuDNN does.
#include <fmt/format.h>

#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

std::vector<std::int64_t> resolved_stride(const Attributes& attributes) {
  std::vector<std::int64_t> stride = attributes.integers("stride");
  for (std::size_t i = 0; i < stride.size(); ++i) {
    if (stride[i] == 0) stride[i] = attributes.integers("kernel")[i];
  }
  return stride;
}

tl::expected<Inference, InferenceError> infer_window(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, false)) return tl::unexpected(*error);
  const auto& kernel = attributes.integers("kernel");
  const auto& padding = attributes.integers("padding");
  const std::vector<std::int64_t> stride = resolved_stride(attributes);
  Shape y = x.shape;
  for (std::size_t i = 0; i < 2; ++i) {
    if (padding[i] > kernel[i] / 2) {
      return refuse(
          fmt::format("padding {} is more than half the kernel {}", padding[i], kernel[i]),
          "padding");
    }
    const auto count =
        window_count(x.shape[2 + i].constant, {.kernel = kernel[i],
                                               .stride = stride[i],
                                               .padding_before = padding[i],
                                               .padding_after = padding[i],
                                               .ceil_mode = attributes.boolean("ceil_mode")});
    if (!count) {
      return refuse(fmt::format("kernel {} is larger than the padded input {}", kernel[i],
                                x.shape[2 + i].constant + 2 * padding[i]),
                    "kernel", 0);
    }
    y[2 + i] = *count;
  }
  Inference result;
  result.outputs = {{y, x.type}};
  result.flops = element_count(y) * Affine(kernel[0]) * Affine(kernel[1]);
  return result;
}

Attributes window_attributes(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("stride", resolved_stride(lowering.attributes()));
  return attributes;
}

Affine window_flops(const OperatorLowering& lowering) {
  const auto& kernel = lowering.attributes().integers("kernel");
  return element_count(lowering.output_type().shape) * Affine(kernel[0]) * Affine(kernel[1]);
}

void forward_max(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const TensorView y = lowering.new_output();
  std::vector<TensorView> writes{y};
  if (lowering.pytorch()) {
    writes.push_back(
        lowering.new_tensor("indices", y.shape, DataType::int64, StorageClass::saved_auxiliary));
  }
  lowering.emit(Kernel::max_pool_forward, "forward", {x}, writes,
                {.attributes = window_attributes(lowering), .flops = window_flops(lowering)});
  lowering.save("input", x);
  if (lowering.pytorch())
    lowering.save("indices", writes[1]);
  else
    lowering.save("result", y);
}

void backward_max(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const TensorView found =
      lowering.pytorch() ? lowering.saved("indices") : lowering.saved("result");
  lowering.emit(Kernel::max_pool_backward, "backward", {lowering.saved("input"), found, dy}, {dx},
                {.attributes = window_attributes(lowering), .flops = window_flops(lowering)});
  lowering.give_input_gradient(0, dx);
}

void forward_average(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  lowering.emit(Kernel::avg_pool_forward, "forward", {x}, {lowering.new_output()},
                {.attributes = window_attributes(lowering), .flops = window_flops(lowering)});
  // PyTorch keeps the input though only its sizes are needed.
  if (lowering.pytorch()) lowering.save("input", x);
}

void backward_average(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  lowering.emit(Kernel::avg_pool_backward, "backward", {dy}, {dx},
                {.attributes = window_attributes(lowering), .flops = window_flops(lowering)});
  lowering.give_input_gradient(0, dx);
}

tl::expected<Inference, InferenceError> infer_adaptive(const Attributes& attributes,
                                                       std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, false)) return tl::unexpected(*error);
  const auto& size = attributes.integers("size");
  Inference result;
  result.outputs = {{{x.shape[0], x.shape[1], size[0], size[1]}, x.type}};
  result.flops = element_count(x.shape);
  return result;
}

// ATen runs a 1x1 output as a mean, which saves nothing.
bool is_mean(const OperatorLowering& lowering) {
  return lowering.attributes().integers("size") == std::vector<std::int64_t>{1, 1};
}

void forward_adaptive(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  lowering.emit(Kernel::adaptive_avg_pool_forward, "forward", {x}, {lowering.new_output()},
                {.flops = element_count(x.shape)});
  if (lowering.pytorch() && !is_mean(lowering)) lowering.save("input", x);
}

void backward_adaptive(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  lowering.emit(Kernel::adaptive_avg_pool_backward, "backward", {dy}, {dx},
                {.flops = element_count(dx.shape)});
  lowering.give_input_gradient(0, dx);
}

AttributeSpec pool_stride() {
  AttributeSpec spec = window_attribute("stride", "step; 0: the kernel's extent", 0, 0, 2);
  return spec;
}
AttributeSpec ceil_mode() {
  return {.name = "ceil_mode",
          .type = AttributeType::boolean,
          .doc = "round the output size up",
          .default_value = false};
}

}  // namespace

OperatorRow rows::max_pool2d() {
  return {.name = "max_pool2d",
          .doc = "2-D maximum pooling",
          .attributes = {window_attribute("kernel", "extent", {}, 1, 2), pool_stride(),
                         window_attribute("padding", "on each side", 0, 0, 2), ceil_mode()},
          .infer = infer_window,
          .lowering = {LoweringRules{forward_max, backward_max},
                       LoweringRules{forward_max, backward_max}}};
}

OperatorRow rows::avg_pool2d() {
  return {.name = "avg_pool2d",
          .doc = "2-D average pooling",
          .attributes = {window_attribute("kernel", "extent", {}, 1, 2),
                         pool_stride(),
                         window_attribute("padding", "on each side", 0, 0, 2),
                         ceil_mode(),
                         {.name = "count_include_pad",
                          .type = AttributeType::boolean,
                          .doc = "padding counts in the average",
                          .default_value = true}},
          .infer = infer_window,
          .lowering = {LoweringRules{forward_average, backward_average},
                       LoweringRules{forward_average, backward_average}}};
}

OperatorRow rows::adaptive_avg_pool2d() {
  return {.name = "adaptive_avg_pool2d",
          .doc = "2-D average pooling to a given output size",
          .attributes = {window_attribute("size", "output height and width", {}, 1, 2)},
          .infer = infer_adaptive,
          .lowering = {LoweringRules{forward_adaptive, backward_adaptive},
                       LoweringRules{forward_adaptive, backward_adaptive}}};
}

}  // namespace stowage
