// conv1d, conv2d and conv3d: rows and lowering.
//
// PyTorch's convolution_backward computes the data gradient, then the filter's, then the bias's
// (ATen/native/Convolution.cpp); our own executor computes the filter's first, so that the saved
// input is gone before the data gradient is made. Padding that is not the same on both sides of an
// axis takes a padded copy of the input first (_convolution_same, ibid.), which is what is saved.
#include "estimator/catalogue/convolution.hpp"

#include <utility>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

Attributes convolution_attributes(const OperatorLowering& lowering) {
  Attributes attributes;
  if (padding_of_axes(lowering.attributes()) != nullptr) return attributes;  // it says so itself
  attributes.set("padding", symmetric_padding(resolved_padding(lowering.attributes())));
  return attributes;
}

/// What the longer side of each axis has beyond the other, as the `pad` kernel's attributes; none:
/// the padding is symmetric.
std::optional<Attributes> excess_padding(const OperatorLowering& lowering) {
  if (padding_of_axes(lowering.attributes()) != nullptr) return std::nullopt;
  const Padding padding = resolved_padding(lowering.attributes());
  if (padding.before == padding.after) return std::nullopt;
  const std::vector<std::int64_t> both = symmetric_padding(padding);
  std::vector<std::int64_t> before(2, 0);
  std::vector<std::int64_t> after(2, 0);
  for (std::size_t i = 0; i < both.size(); ++i) {
    before.push_back(padding.before[i] - both[i]);
    after.push_back(padding.after[i] - both[i]);
  }
  Attributes attributes;
  attributes.set("before", before);
  attributes.set("after", after);
  attributes.set("mode", std::string("constant"));
  attributes.set("value", 0.0);
  return attributes;
}

TensorView padded_input(OperatorLowering& lowering, const TensorView& x, const Attributes& excess) {
  Shape shape = x.shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    shape[i] =
        shape[i] + Affine(excess.integers("before")[i]) + Affine(excess.integers("after")[i]);
  }
  const TensorView padded = laid_out(
      lowering.new_tensor("input.padded", std::move(shape), x.type, StorageClass::activation),
      suggests_channels_last(x));
  lowering.emit(Kernel::pad, "pad", {x}, {padded}, {.attributes = excess});
  return padded;
}

void forward_convolution(OperatorLowering& lowering, std::vector<StorageId> holds) {
  const bool bias = lowering.parameter_count() > 1;
  TensorView saved = lowering.input();
  if (const auto excess = excess_padding(lowering)) {
    saved = padded_input(lowering, saved, *excess);
  }
  const bool channels_last = convolves_channels_last(saved, lowering.parameter(0));
  const TensorView x = lowering.contiguous_within(saved, "input.contiguous", channels_last);
  const TensorView w =
      lowering.contiguous_within(lowering.parameter(0), "weight.contiguous", channels_last);
  const TensorView y = laid_out(lowering.new_output(), channels_last);
  lowering.set_output(0, y);
  std::vector<TensorView> reads{x, w};
  if (bias) reads.push_back(lowering.parameter(1));
  lowering.emit(Kernel::convolution_forward, "forward", reads, {y},
                {.attributes = convolution_attributes(lowering),
                 .holds = std::move(holds),
                 .flops = convolution_flops(w, y),
                 .convolution = lowering.add_convolution(
                     convolution_call(lowering, ConvolutionCall::Direction::forward, x, w, y))});
  lowering.save("input", saved);
  lowering.save("weight", lowering.parameter(0));
}

void forward_convolution_stowage(OperatorLowering& lowering) { forward_convolution(lowering, {}); }

void forward_convolution_pytorch(OperatorLowering& lowering) {
  std::vector<StorageId> holds;
  // Whoever called the convolution holds its argument until it returns.
  if (excess_padding(lowering)) holds.push_back(lowering.input().storage);
  forward_convolution(lowering, std::move(holds));
}

/// What the convolution's backward works on, in its layout.
struct Arguments {
  TensorView x, dy;
  bool channels_last = false;
};

Arguments backward_arguments(OperatorLowering& lowering, bool channels_last) {
  return {lowering.contiguous_within(lowering.saved("input"), "backward.input", channels_last),
          lowering.contiguous_within(lowering.output_gradient(), "grad.contiguous", channels_last),
          channels_last};
}

KernelNode* emit_data_gradient(OperatorLowering& lowering, const Arguments& in,
                               const TensorView& dx) {
  const TensorView w =
      lowering.contiguous_within(lowering.parameter(0), "backward.weight", in.channels_last);
  return &lowering.emit(
      Kernel::convolution_backward_data, "backward.data", {in.dy, w}, {dx},
      {.attributes = convolution_attributes(lowering),
       .flops = convolution_flops(w, in.dy),
       .convolution = lowering.add_convolution(
           convolution_call(lowering, ConvolutionCall::Direction::backward_data, in.x, w, in.dy))});
}

KernelNode* emit_filter_gradient(OperatorLowering& lowering, const Arguments& in,
                                 const TensorView& dw) {
  const TensorView w = lowering.parameter(0);
  return &lowering.emit(
      Kernel::convolution_backward_filter, "backward.filter", {in.x, in.dy}, {dw},
      {.attributes = convolution_attributes(lowering),
       .flops = convolution_flops(w, in.dy),
       .convolution = lowering.add_convolution(convolution_call(
           lowering, ConvolutionCall::Direction::backward_filter, in.x, w, in.dy))});
}

/// Emits the convolution's own gradients in a kernel set's order. `dx`: of its (padded) input, if
/// wanted.
using EmitGradients = void (*)(OperatorLowering& lowering, const Arguments& in,
                               const std::optional<TensorView>& dx,
                               const std::optional<TensorView>& dw);

void emit_data_last(OperatorLowering& lowering, const Arguments& in,
                    const std::optional<TensorView>& dx, const std::optional<TensorView>& dw) {
  if (dw) emit_filter_gradient(lowering, in, *dw);
  emit_bias_gradient(lowering, in.dy, 1);
  if (dx) emit_data_gradient(lowering, in, *dx);
}

/// As autograd does. The last kernel call, or null.
KernelNode* emit_in_autograds_order(OperatorLowering& lowering, const Arguments& in,
                                    const std::optional<TensorView>& dx,
                                    const std::optional<TensorView>& dw) {
  KernelNode* last = nullptr;
  if (dx) last = emit_data_gradient(lowering, in, *dx);
  if (dw) last = emit_filter_gradient(lowering, in, *dw);
  if (KernelNode* node = emit_bias_gradient(lowering, in.dy, 1)) last = node;
  return last;
}

void emit_data_first(OperatorLowering& lowering, const Arguments& in,
                     const std::optional<TensorView>& dx, const std::optional<TensorView>& dw) {
  emit_in_autograds_order(lowering, in, dx, dw);
}

/// The convolution's autograd node lets go of what it saved before the padding's runs.
void emit_data_first_and_hold(OperatorLowering& lowering, const Arguments& in,
                              const std::optional<TensorView>& dx,
                              const std::optional<TensorView>& dw) {
  KernelNode* const last = emit_in_autograds_order(lowering, in, dx, dw);
  for (const StorageId held : {lowering.saved("input").storage, lowering.parameter(0).storage,
                               lowering.output_gradient().storage}) {
    last->holds.push_back(held);
  }
}

std::optional<TensorView> given_filter_gradient(OperatorLowering& lowering, bool channels_last) {
  if (!lowering.parameter_needs_gradient(0)) return std::nullopt;
  const TensorView dw = laid_out(lowering.new_parameter_gradient(0), channels_last);
  lowering.give_parameter_gradient(0, dw);
  return dw;
}

void backward_unpadded(OperatorLowering& lowering, EmitGradients emit, const Arguments& in) {
  std::optional<TensorView> dx;
  if (lowering.input_needs_gradient()) {
    dx = laid_out(lowering.new_input_gradient(), in.channels_last);
  }
  emit(lowering, in, dx, given_filter_gradient(lowering, in.channels_last));
  if (dx) lowering.give_input_gradient(0, *dx);
}

/// Two autograd nodes: the convolution's and the padding's.
void backward_padded(OperatorLowering& lowering, EmitGradients emit, const Arguments& in,
                     const Attributes& excess) {
  lowering.hold_by_hand();
  const TensorView x = lowering.saved("input");
  const TensorView padded = laid_out(
      lowering.new_tensor("grad_input.padded", x.shape, x.type, StorageClass::activation_gradient),
      in.channels_last);
  emit(lowering, in, padded, given_filter_gradient(lowering, in.channels_last));
  const TensorView dx = laid_out(lowering.new_input_gradient(), in.channels_last);
  lowering.emit(Kernel::pad_backward, "backward.pad", {padded}, {dx}, {.attributes = excess});
  lowering.give_input_gradient(0, dx);
}

template <EmitGradients emit, EmitGradients emit_before_padding>
void backward_convolution(OperatorLowering& lowering) {
  const bool channels_last =
      convolves_channels_last(lowering.saved("input"), lowering.parameter(0));
  const Arguments in = backward_arguments(lowering, channels_last);
  const auto excess = excess_padding(lowering);
  if (lowering.input_needs_gradient() && excess) {
    backward_padded(lowering, emit_before_padding, in, *excess);
  } else {
    backward_unpadded(lowering, emit, in);
  }
}

OperatorRow convolution_row(std::string_view name, std::string_view doc, int spatial) {
  AttributeSpec padding = window_attribute(
      "padding", "zeros on each side: one number an axis, or before and after of each", 0, 0,
      spatial);
  padding.choices = {"same", "valid"};
  padding.other_length = 2 * spatial;
  return {
      .name = name,
      .doc = doc,
      .attributes = {channels_attribute(), window_attribute("kernel", "extent", {}, 1, spatial),
                     window_attribute("stride", "step", 1, 1, spatial), padding,
                     window_attribute("dilation", "spacing of the taps", 1, 1, spatial),
                     groups_attribute(), bias_attribute()},
      .infer = infer_convolution,
      .lowering = {.stowage = {forward_convolution_stowage,
                               backward_convolution<emit_data_last, emit_data_last>},
                   .pytorch = {forward_convolution_pytorch,
                               backward_convolution<emit_data_first, emit_data_first_and_hold>}},
      .autocast = AutocastClass::lower};
}

}  // namespace

ConvolutionCall convolution_call(const OperatorLowering& lowering,
                                 ConvolutionCall::Direction direction, const TensorView& x,
                                 const TensorView& w, const TensorView& y) {
  const Attributes& attributes = lowering.attributes();
  const std::vector<std::int64_t>* const padding = padding_of_axes(attributes);
  ConvolutionWindow window{
      .stride = attributes.integers("stride"),
      .padding = padding != nullptr ? *padding : symmetric_padding(resolved_padding(attributes)),
      .dilation = attributes.integers("dilation"),
      .groups = attributes.integer("groups")};
  return convolution_call(std::move(window), direction, x, w, y);
}

KernelNode* emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy,
                               std::int64_t axis) {
  if (lowering.parameter_count() < 2 || !lowering.parameter_needs_gradient(1)) return nullptr;
  const TensorView db = lowering.new_parameter_gradient(1);
  Attributes attributes;
  attributes.set("axis", axis);
  KernelNode& node = lowering.emit(Kernel::channel_sum, "backward.bias", {dy}, {db},
                                   {.attributes = attributes, .flops = element_count(dy.shape)});
  lowering.give_parameter_gradient(1, db);
  return &node;
}

OperatorRow rows::conv1d() {
  return convolution_row("conv1d", "1-D convolution over [batch, channels, length]", 1);
}
OperatorRow rows::conv2d() {
  return convolution_row("conv2d", "2-D convolution over [batch, channels, height, width]", 2);
}
OperatorRow rows::conv3d() {
  return convolution_row("conv3d", "3-D convolution over [batch, channels, depth, height, width]",
                         3);
}

}  // namespace stowage
