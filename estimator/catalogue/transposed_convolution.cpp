// conv_transpose2d: the data gradient of a convolution, run forward. In terms of that convolution
// its input is y and its output is x, which is how its workspaces are asked for. Output size:
// (in - 1) * stride - 2 * padding + kernel + output_padding (torch.nn.ConvTranspose2d).
#include <fmt/format.h>

#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer(const Attributes& attributes,
                                              std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_image(x, true)) return tl::unexpected(*error);
  const std::int64_t in = x.shape[1].constant;
  const std::int64_t out = attributes.integer("channels");
  const std::int64_t groups = attributes.integer("groups");
  if (in % groups != 0 || out % groups != 0) {
    return refuse(fmt::format("groups {} does not divide its {} input and {} output channels",
                              groups, in, out),
                  "groups");
  }
  const auto& kernel = attributes.integers("kernel");
  Shape y{x.shape[0], out, 0, 0};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t stride = attributes.integers("stride")[i];
    const std::int64_t extra = attributes.integers("output_padding")[i];
    if (extra >= stride) {
      return refuse(fmt::format("output_padding {} is not less than the stride {}", extra, stride),
                    "output_padding");
    }
    const Affine whole =
        Affine(x.shape[2 + i].constant - 1) * Affine(stride) + Affine(kernel[i]) + Affine(extra);
    const Affine cut = Affine(2) * Affine(attributes.integers("padding")[i]);
    const std::int64_t size = (whole - cut).constant;
    if (size < 1) return refuse(fmt::format("its output would have size {}", size), "padding", 0);
    y[2 + i] = size;
  }
  Inference result;
  result.outputs = {{y, x.type}};
  result.parameters.push_back(
      {.name = "weight", .shape = {in, out / groups, kernel[0], kernel[1]}, .type = x.type});
  if (attributes.boolean("bias")) {
    result.parameters.push_back({.name = "bias", .shape = {out}, .type = x.type});
  }
  result.flops = element_count(x.shape) * Affine(2) * Affine(out / groups) * Affine(kernel[0]) *
                 Affine(kernel[1]);
  return result;
}

void forward(OperatorLowering& lowering) {
  const bool bias = lowering.parameter_count() > 1;
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  const TensorView w = lowering.parameter(0);
  const TensorView y = lowering.new_output();
  std::vector<TensorView> reads{x, w};
  if (bias) reads.push_back(lowering.parameter(1));
  lowering.emit(Kernel::transposed_convolution_forward, "forward", reads, {y},
                {.flops = convolution_flops(w, x),
                 .convolution = lowering.add_convolution(convolution_call(
                     lowering, ConvolutionCall::Direction::backward_data, y, w, x))});
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
    lowering.emit(Kernel::transposed_convolution_backward_data, "backward.data", {dy, w}, {dx},
                  {.flops = convolution_flops(w, x),
                   .convolution = lowering.add_convolution(
                       convolution_call(lowering, ConvolutionCall::Direction::forward, dy, w, x))});
    lowering.give_input_gradient(0, dx);
  };
  const auto filter = [&] {
    if (!lowering.parameter_needs_gradient(0)) return;
    const TensorView dw = lowering.new_parameter_gradient(0);
    lowering.emit(Kernel::transposed_convolution_backward_filter, "backward.filter", {x, dy}, {dw},
                  {.flops = convolution_flops(w, x),
                   .convolution = lowering.add_convolution(convolution_call(
                       lowering, ConvolutionCall::Direction::backward_filter, dy, w, x))});
    lowering.give_parameter_gradient(0, dw);
  };
  if (lowering.pytorch()) data();
  filter();
  emit_bias_gradient(lowering, dy, 1);
  if (!lowering.pytorch()) data();
}

}  // namespace

OperatorRow rows::conv_transpose2d() {
  return {.name = "conv_transpose2d",
          .doc = "2-D transposed convolution over [batch, channels, height, width]",
          .attributes = {channels_attribute(), window_attribute("kernel", "extent", {}, 1),
                         window_attribute("stride", "step", 1, 1),
                         window_attribute("padding", "rows cut off each side", 0, 0),
                         window_attribute("output_padding", "rows added on one side", 0, 0),
                         groups_attribute(), bias_attribute()},
          .infer = infer,
          .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}},
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
