// conv2d. Formulas: output size as in torch.nn.Conv2d's documentation; a multiply-add is two flops.
// Lowering: PyTorch's convolution_backward computes the data gradient, then the filter's, then the
// bias's (ATen/native/Convolution.cpp); our own executor computes the filter's first, so that the
// saved input is gone before the data gradient is made.
#include "estimator/catalogue/convolution.hpp"

#include <fmt/format.h>

#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

std::vector<std::int64_t> resolved_padding(const Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries()) {
    if (name != "padding") continue;
    if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) return *numbers;
  }
  // same: half of what the dilated kernel overhangs (odd kernels, checked by the shape rule)
  std::vector<std::int64_t> padding;
  const auto& kernel = attributes.integers("kernel");
  const auto& dilation = attributes.integers("dilation");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    padding.push_back(checked_multiply(dilation[i], kernel[i] - 1) / 2);
  }
  return padding;
}

namespace {

bool is_same_padding(const Attributes& attributes) {
  for (const auto& [name, value] : attributes.entries()) {
    if (name == "padding") return std::holds_alternative<std::string>(value);
  }
  return false;
}

std::optional<InferenceError> check_same_padding(const Attributes& attributes) {
  if (!is_same_padding(attributes)) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    if (attributes.integers("stride")[i] != 1) {
      return InferenceError{.message = "padding 'same' goes with stride 1 only",
                            .attribute = "padding"};
    }
    if (attributes.integers("kernel")[i] % 2 == 0) {
      return InferenceError{.message = "padding 'same' of an even kernel is not symmetric",
                            .attribute = "padding",
                            .hint = "give the padding as numbers"};
    }
  }
  return std::nullopt;
}

tl::expected<Inference, InferenceError> infer(const Attributes& attributes,
                                              std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, true)) return tl::unexpected(*error);
  if (auto error = check_same_padding(attributes)) return tl::unexpected(*error);
  const std::int64_t in = x.shape[1].constant;
  const std::int64_t out = attributes.integer("channels");
  const std::int64_t groups = attributes.integer("groups");
  if (in % groups != 0) {
    return refuse(fmt::format("groups {} does not divide its {} input channels", groups, in),
                  "groups", 0);
  }
  if (out % groups != 0) {
    return refuse(fmt::format("groups {} does not divide its {} output channels", groups, out),
                  "groups");
  }
  const auto padding = resolved_padding(attributes);
  Shape y{x.shape[0], out, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const Window window{.kernel = attributes.integers("kernel")[i],
                        .stride = attributes.integers("stride")[i],
                        .padding_before = padding[i],
                        .padding_after = padding[i],
                        .dilation = attributes.integers("dilation")[i]};
    const auto count = window_count(x.shape[2 + i].constant, window);
    if (!count) {
      return refuse(fmt::format("kernel {} is larger than the padded input {}",
                                window.dilation * (window.kernel - 1) + 1,
                                x.shape[2 + i].constant + 2 * padding[i]),
                    "kernel", 0);
    }
    y[2 + i] = *count;
  }
  const auto& kernel = attributes.integers("kernel");
  const Shape w{out, in / groups, kernel[0], kernel[1]};
  Inference result;
  result.outputs = {{y, x.type}};
  result.parameters.push_back({.name = "weight", .shape = w, .type = x.type});
  if (attributes.boolean("bias")) {
    result.parameters.push_back({.name = "bias", .shape = {out}, .type = x.type});
  }
  result.flops =
      element_count(y) * Affine(2) * Affine(in / groups) * Affine(kernel[0]) * Affine(kernel[1]);
  return result;
}

Attributes with_padding(const OperatorLowering& lowering) {
  Attributes attributes;
  attributes.set("padding", resolved_padding(lowering.attributes()));
  return attributes;
}

void forward(OperatorLowering& lowering) {
  const bool bias = lowering.parameter_count() > 1;
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const TensorView w = lowering.parameter(0);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> reads{x, w};
  if (bias) reads.push_back(lowering.parameter(1));
  lowering.emit(Kernel::convolution_forward, "forward", reads, {y},
                {.attributes = with_padding(lowering),
                 .flops = convolution_flops(w, y),
                 .convolution = lowering.add_convolution(
                     convolution_call(lowering, ConvolutionCall::Direction::forward, x, w, y))});
  lowering.save("input", x);
  lowering.save("weight", w);
}

void backward(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView w = lowering.parameter(0);
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const auto data = [&] {
    if (!lowering.input_needs_gradient()) return;
    const TensorView dx = lowering.new_input_gradient();
    lowering.emit(Kernel::convolution_backward_data, "backward.data", {dy, w}, {dx},
                  {.attributes = with_padding(lowering),
                   .flops = convolution_flops(w, dy),
                   .convolution = lowering.add_convolution(convolution_call(
                       lowering, ConvolutionCall::Direction::backward_data, x, w, dy))});
    lowering.give_input_gradient(0, dx);
  };
  const auto filter = [&] {
    if (!lowering.parameter_needs_gradient(0)) return;
    const TensorView dw = lowering.new_parameter_gradient(0);
    lowering.emit(Kernel::convolution_backward_filter, "backward.filter", {x, dy}, {dw},
                  {.attributes = with_padding(lowering),
                   .flops = convolution_flops(w, dy),
                   .convolution = lowering.add_convolution(convolution_call(
                       lowering, ConvolutionCall::Direction::backward_filter, x, w, dy))});
    lowering.give_parameter_gradient(0, dw);
  };
  if (lowering.pytorch()) data();
  filter();
  emit_bias_gradient(lowering, dy, 1);
  if (!lowering.pytorch()) data();
}

}  // namespace

ConvolutionCall convolution_call(const OperatorLowering& lowering,
                                 ConvolutionCall::Direction direction, const TensorView& x,
                                 const TensorView& w, const TensorView& y) {
  const Attributes& attributes = lowering.attributes();
  return {.direction = direction,
          .x = x,
          .w = w,
          .y = y,
          .stride = attributes.integers("stride"),
          .padding = resolved_padding(attributes),
          .dilation = attributes.has("dilation") ? attributes.integers("dilation")
                                                 : std::vector<std::int64_t>{1, 1},
          .groups = attributes.integer("groups")};
}

Affine convolution_flops(const TensorView& w, const TensorView& y) {
  Shape taps(w.shape.begin() + 1, w.shape.end());
  return element_count(y.shape) * Affine(2) * element_count(taps);
}

void emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy, std::int64_t axis) {
  if (lowering.parameter_count() < 2 || !lowering.parameter_needs_gradient(1)) return;
  const TensorView db = lowering.new_parameter_gradient(1);
  Attributes attributes;
  attributes.set("axis", axis);
  lowering.emit(Kernel::channel_sum, "backward.bias", {dy}, {db},
                {.attributes = attributes, .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(1, db);
}

AttributeSpec channels_attribute() {
  return {
      .name = "channels", .type = AttributeType::integer, .doc = "output channels", .minimum = 1};
}
AttributeSpec window_attribute(std::string_view name, std::string_view doc,
                               std::optional<std::int64_t> value, double minimum) {
  AttributeSpec spec{.name = name, .type = AttributeType::integers, .doc = doc};
  if (value) spec.default_value = std::vector<std::int64_t>{*value, *value};
  spec.minimum = minimum;
  spec.length = 2;
  return spec;
}
AttributeSpec groups_attribute() {
  return {.name = "groups",
          .type = AttributeType::integer,
          .doc = "groups of channels convolved apart",
          .default_value = std::int64_t{1},
          .minimum = 1};
}
AttributeSpec bias_attribute() {
  return {.name = "bias",
          .type = AttributeType::boolean,
          .doc = "add a learned bias",
          .default_value = true};
}

OperatorRow rows::conv2d() {
  AttributeSpec padding = window_attribute("padding", "zeros on each side, or same", 0, 0);
  padding.choices = {"same"};
  return {.name = "conv2d",
          .doc = "2-D convolution over [batch, channels, height, width]",
          .attributes = {channels_attribute(), window_attribute("kernel", "extent", {}, 1),
                         window_attribute("stride", "step", 1, 1), padding,
                         window_attribute("dilation", "spacing of the taps", 1, 1),
                         groups_attribute(), bias_attribute()},
          .infer = infer,
          .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}},
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
