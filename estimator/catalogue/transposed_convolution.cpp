// conv_transpose1d, 2d and 3d: the data gradient of a convolution, run forward. In terms of that
// convolution its input is y and its output is x, which is how its workspaces are asked for.
#include "estimator/catalogue/convolution.hpp"
#include "estimator/catalogue/rows.hpp"

namespace stowage {

namespace {

void forward_transposed_convolution(OperatorLowering& lowering) {
  const bool bias = lowering.parameter_count() > 1;
  const bool channels_last = convolves_channels_last(lowering.input(), lowering.parameter(0));
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

/// The kernels of the backward rule; each kernel set calls them in its own order.
class Backward {
 public:
  explicit Backward(OperatorLowering& lowering)
      : lowering_(lowering),
        w_(lowering.parameter(0)),
        channels_last_(convolves_channels_last(lowering.saved("input"), w_)),
        dy_(lowering.contiguous_within(lowering.output_gradient(), "grad.contiguous",
                                       channels_last_)),
        x_(lowering.contiguous_within(lowering.saved("input"), "backward.input", channels_last_)) {}

  void data() {
    if (!lowering_.input_needs_gradient()) return;
    const TensorView filter = lowering_.contiguous_within(w_, "backward.weight", channels_last_);
    const TensorView dx = laid_out(lowering_.new_input_gradient(), channels_last_);
    lowering_.emit(Kernel::transposed_convolution_backward_data, "backward.data", {dy_, filter},
                   {dx}, extras(ConvolutionCall::Direction::forward));
    lowering_.give_input_gradient(0, dx);
  }

  void filter() {
    if (!lowering_.parameter_needs_gradient(0)) return;
    const TensorView dw = laid_out(lowering_.new_parameter_gradient(0), channels_last_);
    lowering_.emit(Kernel::transposed_convolution_backward_filter, "backward.filter", {x_, dy_},
                   {dw}, extras(ConvolutionCall::Direction::backward_filter));
    lowering_.give_parameter_gradient(0, dw);
  }

  void bias() { emit_bias_gradient(lowering_, dy_, 1); }

 private:
  [[nodiscard]] NodeExtras extras(ConvolutionCall::Direction direction) const {
    return {.flops = convolution_flops(w_, x_),
            .convolution =
                lowering_.add_convolution(convolution_call(lowering_, direction, dy_, w_, x_))};
  }

  OperatorLowering& lowering_;
  TensorView w_;
  bool channels_last_;
  TensorView dy_, x_;
};

void backward_transposed_convolution_stowage(OperatorLowering& lowering) {
  Backward backward(lowering);
  backward.filter();
  backward.bias();
  backward.data();
}

void backward_transposed_convolution_pytorch(OperatorLowering& lowering) {
  Backward backward(lowering);
  backward.data();
  backward.filter();
  backward.bias();
}

OperatorRow transposed_convolution_row(std::string_view name, std::string_view doc, int spatial) {
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
      .lowering = {.stowage = {forward_transposed_convolution,
                               backward_transposed_convolution_stowage},
                   .pytorch = {forward_transposed_convolution,
                               backward_transposed_convolution_pytorch}},
      .autocast = AutocastClass::lower};
}

}  // namespace

OperatorRow rows::conv_transpose1d() {
  return transposed_convolution_row("conv_transpose1d",
                                    "1-D transposed convolution over [batch, channels, length]", 1);
}
OperatorRow rows::conv_transpose2d() {
  return transposed_convolution_row(
      "conv_transpose2d", "2-D transposed convolution over [batch, channels, height, width]", 2);
}
OperatorRow rows::conv_transpose3d() {
  return transposed_convolution_row(
      "conv_transpose3d", "3-D transposed convolution over [batch, channels, depth, height, width]",
      3);
}

}  // namespace stowage
