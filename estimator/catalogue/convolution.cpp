// conv1d, conv2d and conv3d: rows and lowering. The filter is a parameter or, computed by other
// layers, the second input; the bias a parameter or the third.
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

/// The excess padding of one side of each axis, as the `pad` kernel's attributes; none: the padding
/// is symmetric.
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

bool computes_filter(const OperatorLowering& lowering) { return lowering.input_count() > 1; }

/// The bias: the input after a computed filter, or the last parameter. None: there is no bias.
std::optional<TensorView> convolution_bias(const OperatorLowering& lowering) {
  if (lowering.input_count() > 2) return lowering.input(2);
  const int place = computes_filter(lowering) ? 0 : 1;
  if (lowering.parameter_count() <= place) return std::nullopt;
  return lowering.parameter(place);
}

void forward_convolution(OperatorLowering& lowering, std::vector<StorageId> holds) {
  const TensorView filter = convolution_filter(lowering);
  TensorView saved = lowering.input();
  if (const auto excess = excess_padding(lowering)) {
    saved = padded_input(lowering, saved, *excess);
  }
  const bool channels_last = convolves_channels_last(saved, filter);
  const TensorView x = lowering.contiguous_within(saved, "input.contiguous", channels_last);
  const TensorView w = lowering.contiguous_within(filter, "weight.contiguous", channels_last);
  const TensorView y = laid_out(lowering.new_output(), channels_last);
  lowering.set_output(0, y);
  std::vector<TensorView> reads{x, w};
  if (const auto bias = convolution_bias(lowering)) reads.push_back(*bias);
  lowering.emit(Kernel::convolution_forward, "forward", reads, {y},
                {.attributes = convolution_attributes(lowering),
                 .holds = std::move(holds),
                 .flops = convolution_flops(w, y),
                 .convolution = lowering.add_convolution(
                     convolution_call(lowering, ConvolutionCall::Direction::forward, x, w, y))});
  lowering.save("input", saved);
  lowering.save("weight", filter);
}

void forward_convolution_stowage(OperatorLowering& lowering) { forward_convolution(lowering, {}); }

void forward_convolution_pytorch(OperatorLowering& lowering) {
  std::vector<StorageId> holds;
  // Whoever called the convolution holds its argument until it returns.
  if (excess_padding(lowering)) holds.push_back(lowering.input().storage);
  forward_convolution(lowering, std::move(holds));
}

/// The arguments of the convolution's backward, in its layout.
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
      lowering.contiguous_within(lowering.saved("weight"), "backward.weight", in.channels_last);
  return &lowering.emit(
      Kernel::convolution_backward_data, "backward.data", {in.dy, w}, {dx},
      {.attributes = convolution_attributes(lowering),
       .flops = convolution_flops(w, in.dy),
       .convolution = lowering.add_convolution(
           convolution_call(lowering, ConvolutionCall::Direction::backward_data, in.x, w, in.dy))});
}

KernelNode* emit_filter_gradient(OperatorLowering& lowering, const Arguments& in,
                                 const TensorView& dw) {
  const TensorView w = lowering.saved("weight");
  return &lowering.emit(
      Kernel::convolution_backward_filter, "backward.filter", {in.x, in.dy}, {dw},
      {.attributes = convolution_attributes(lowering),
       .flops = convolution_flops(w, in.dy),
       .convolution = lowering.add_convolution(convolution_call(
           lowering, ConvolutionCall::Direction::backward_filter, in.x, w, in.dy))});
}

/// Which gradients are needed: of the (padded) input, of the filter, and of a computed bias. A
/// learned bias is handled separately.
struct WantedGradients {
  std::optional<TensorView> dx, dw, db;
};

/// A bias that is an input.
std::optional<TensorView> new_computed_bias_gradient(OperatorLowering& lowering) {
  if (lowering.input_count() < 3 || !lowering.input_needs_gradient(2)) return std::nullopt;
  return lowering.new_input_gradient(2);
}

KernelNode* emit_either_bias_gradient(OperatorLowering& lowering, const Arguments& in,
                                      const WantedGradients& wanted) {
  if (wanted.db) return &emit_bias_sum(lowering, in.dy, *wanted.db, 1);
  const int place = computes_filter(lowering) ? 0 : 1;
  return emit_bias_gradient(lowering, in.dy, 1, place);
}

/// Emits the convolution's own gradients in a kernel set's order.
using EmitGradients = void (*)(OperatorLowering& lowering, const Arguments& in,
                               const WantedGradients& wanted);

void emit_data_last(OperatorLowering& lowering, const Arguments& in,
                    const WantedGradients& wanted) {
  if (wanted.dw) emit_filter_gradient(lowering, in, *wanted.dw);
  emit_either_bias_gradient(lowering, in, wanted);
  if (wanted.dx) emit_data_gradient(lowering, in, *wanted.dx);
}

/// Emits them in autograd's order. Returns the last kernel call, or null.
KernelNode* emit_in_autograds_order(OperatorLowering& lowering, const Arguments& in,
                                    const WantedGradients& wanted) {
  KernelNode* last = nullptr;
  if (wanted.dx) last = emit_data_gradient(lowering, in, *wanted.dx);
  if (wanted.dw) last = emit_filter_gradient(lowering, in, *wanted.dw);
  if (KernelNode* node = emit_either_bias_gradient(lowering, in, wanted)) last = node;
  return last;
}

void emit_data_first(OperatorLowering& lowering, const Arguments& in,
                     const WantedGradients& wanted) {
  emit_in_autograds_order(lowering, in, wanted);
}

/// The convolution's autograd node lets go of what it saved before the padding's runs.
void emit_data_first_and_hold(OperatorLowering& lowering, const Arguments& in,
                              const WantedGradients& wanted) {
  KernelNode* const last = emit_in_autograds_order(lowering, in, wanted);
  for (const StorageId held : {lowering.saved("input").storage, lowering.saved("weight").storage,
                               lowering.output_gradient().storage}) {
    last->holds.push_back(held);
  }
}

std::optional<TensorView> new_filter_gradient(OperatorLowering& lowering, bool channels_last) {
  if (computes_filter(lowering)) {
    if (!lowering.input_needs_gradient(1)) return std::nullopt;
    return laid_out(lowering.new_input_gradient(1), channels_last);
  }
  if (!lowering.parameter_needs_gradient(0)) return std::nullopt;
  const TensorView dw = laid_out(lowering.new_parameter_gradient(0), channels_last);
  lowering.give_parameter_gradient(0, dw);
  return dw;
}

/// Passes on the gradients of a computed filter and bias, after the input's.
void give_computed_gradients(OperatorLowering& lowering, const std::optional<TensorView>& dw,
                             const std::optional<TensorView>& db) {
  if (dw && computes_filter(lowering)) lowering.give_input_gradient(1, *dw);
  if (db) lowering.give_input_gradient(2, *db);
}

void backward_unpadded(OperatorLowering& lowering, EmitGradients emit, const Arguments& in) {
  std::optional<TensorView> dx;
  if (lowering.input_needs_gradient()) {
    dx = laid_out(lowering.new_input_gradient(), in.channels_last);
  }
  const auto dw = new_filter_gradient(lowering, in.channels_last);
  const auto db = new_computed_bias_gradient(lowering);
  emit(lowering, in, {dx, dw, db});
  if (dx) lowering.give_input_gradient(0, *dx);
  give_computed_gradients(lowering, dw, db);
}

/// Two autograd nodes: the convolution's and the padding's.
void backward_padded(OperatorLowering& lowering, EmitGradients emit, const Arguments& in,
                     const Attributes& excess) {
  lowering.hold_by_hand();
  const TensorView x = lowering.saved("input");
  const TensorView padded = laid_out(
      lowering.new_tensor("grad_input.padded", x.shape, x.type, StorageClass::activation_gradient),
      in.channels_last);
  const auto dw = new_filter_gradient(lowering, in.channels_last);
  const auto db = new_computed_bias_gradient(lowering);
  emit(lowering, in, {padded, dw, db});
  give_computed_gradients(lowering, dw, db);
  const TensorView dx = laid_out(lowering.new_input_gradient(), in.channels_last);
  lowering.emit(Kernel::pad_backward, "backward.pad", {padded}, {dx}, {.attributes = excess});
  lowering.give_input_gradient(0, dx);
}

template <EmitGradients emit, EmitGradients emit_before_padding>
void backward_convolution(OperatorLowering& lowering) {
  const bool channels_last =
      convolves_channels_last(lowering.saved("input"), lowering.saved("weight"));
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
      .max_inputs = 3,
      .infer = infer_convolution,
      .lowering = {.stowage = {forward_convolution_stowage,
                               backward_convolution<emit_data_last, emit_data_last>},
                   .pytorch = {forward_convolution_pytorch,
                               backward_convolution<emit_data_first, emit_data_first_and_hold>}},
      .autocast = AutocastClass::lower};
}

}  // namespace

TensorView convolution_filter(const OperatorLowering& lowering) {
  return computes_filter(lowering) ? lowering.input(1) : lowering.parameter(0);
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
