// conv_transpose1d, 2d and 3d: the data gradient of a convolution, run forward. In terms of that
// convolution its input is y and its output is x, which is how its workspaces are asked for.
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"

namespace stowage {

namespace {

void forward(OperatorLowering& lowering) {
  const bool bias = lowering.parameter_count() > 1;
  const bool channels_last =
      convolves_channels_last(lowering, lowering.input(), lowering.parameter(0));
  const TensorView x =
      lowering.contiguous_within(lowering.input(), "input.contiguous", channels_last);
  const TensorView w =
      lowering.contiguous_within(lowering.parameter(0), "weight.contiguous", channels_last);
  const TensorView y = laid_out(lowering.new_output(), channels_last);
  lowering.set_output(0, y);
  std::vector<TensorView> reads{x, w};
  if (bias) reads.push_back(lowering.parameter(1));
  lowering.emit(Kernel::transposed_convolution_forward, "forward", reads, {y},
                {.flops = convolution_flops(w, x),
                 .convolution = lowering.add_convolution(convolution_call(
                     lowering, ConvolutionCall::Direction::backward_data, y, w, x))});
  lowering.save("input", lowering.input());
  lowering.save("weight", lowering.parameter(0));
}

void backward(OperatorLowering& lowering) {
  const TensorView saved = lowering.saved("input");
  const TensorView w = lowering.parameter(0);
  const bool channels_last = convolves_channels_last(lowering, saved, w);
  const TensorView dy =
      lowering.contiguous_within(lowering.output_gradient(), "grad.contiguous", channels_last);
  const TensorView x = lowering.contiguous_within(saved, "backward.input", channels_last);
  const auto data = [&] {
    if (!lowering.input_needs_gradient()) return;
    const TensorView filter =
        lowering.contiguous_within(lowering.parameter(0), "backward.weight", channels_last);
    const TensorView dx = laid_out(lowering.new_input_gradient(), channels_last);
    lowering.emit(Kernel::transposed_convolution_backward_data, "backward.data", {dy, filter}, {dx},
                  {.flops = convolution_flops(w, x),
                   .convolution = lowering.add_convolution(
                       convolution_call(lowering, ConvolutionCall::Direction::forward, dy, w, x))});
    lowering.give_input_gradient(0, dx);
  };
  const auto filter = [&] {
    if (!lowering.parameter_needs_gradient(0)) return;
    const TensorView dw = laid_out(lowering.new_parameter_gradient(0), channels_last);
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

OperatorRow row(std::string_view name, std::string_view doc, int spatial) {
  return {
      .name = name,
      .doc = doc,
      .attributes = {channels_attribute(), window_attribute("kernel", "extent", {}, 1, spatial),
                     window_attribute("stride", "step", 1, 1, spatial),
                     window_attribute("padding", "rows cut off each side", 0, 0, spatial),
                     window_attribute("output_padding", "rows added on one side", 0, 0, spatial),
                     window_attribute("dilation", "spacing of the taps", 1, 1, spatial),
                     groups_attribute(), bias_attribute()},
      .infer = infer_transposed_convolution,
      .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}},
      .autocast = AutocastClass::lower};
}

}  // namespace

OperatorRow rows::conv_transpose1d() {
  return row("conv_transpose1d", "1-D transposed convolution over [batch, channels, length]", 1);
}
OperatorRow rows::conv_transpose2d() {
  return row("conv_transpose2d", "2-D transposed convolution over [batch, channels, height, width]",
             2);
}
OperatorRow rows::conv_transpose3d() {
  return row("conv_transpose3d",
             "3-D transposed convolution over [batch, channels, depth, height, width]", 3);
}

}  // namespace stowage
