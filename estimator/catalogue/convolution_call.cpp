// What a convolution's kernel calls are made of: the question for a source of workspaces, flops,
// and the sum that is a bias' gradient.
#include "estimator/catalogue/convolution.hpp"

namespace stowage {

namespace {

/// [n, c, length] as [n, c, 1, length].
TensorView with_height(TensorView view) {
  view.shape.insert(view.shape.begin() + 2, Affine(1));
  view.strides.insert(view.strides.begin() + 2, view.strides[1]);
  return view;
}

// Autograd's backward asks by the saved input and the filter, as forward does
// (cudnn_conv_suggest_memory_format in ATen/native/ConvUtils.h, which leaves float64 out).
TensorLayout layout_of(const TensorView& x, const TensorView& w, const TensorView& y) {
  const bool channels_last =
      x.type != DataType::float64 &&
      (suggests_channels_last(x) || suggests_channels_last(w) || suggests_channels_last(y));
  return channels_last ? TensorLayout::channels_last : TensorLayout::contiguous;
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
  const bool flat = window.stride.size() == 1;  // [n, c, length]
  if (flat) {
    window.stride.insert(window.stride.begin(), 1);
    window.padding.insert(window.padding.begin(), 0);
    window.dilation.insert(window.dilation.begin(), 1);
  }
  const auto call = [&](const TensorView& a, const TensorView& b, const TensorView& c) {
    return ConvolutionCall{.direction = direction,
                           .x = {a.shape, a.type},
                           .w = {b.shape, b.type},
                           .y = {c.shape, c.type},
                           .layout = layout_of(a, b, c),
                           .window = Shared(std::move(window))};
  };
  return flat ? call(with_height(x), with_height(w), with_height(y)) : call(x, w, y);
}

Affine convolution_flops(const TensorView& w, const TensorView& y) {
  Affine taps = 1;
  for (std::size_t i = 1; i < w.shape.size(); ++i) taps = taps * w.shape[i];
  return element_count(y.shape) * Affine(2) * taps;
}

KernelNode& emit_bias_sum(OperatorLowering& lowering, const TensorView& dy, const TensorView& db,
                          std::int64_t axis) {
  Attributes attributes;
  attributes.set("axis", axis);
  return lowering.emit(Kernel::channel_sum, "backward.bias", {dy}, {db},
                       {.attributes = attributes, .flops = element_count(dy.shape)});
}

KernelNode* emit_bias_gradient(OperatorLowering& lowering, const TensorView& dy, std::int64_t axis,
                               int place) {
  if (lowering.parameter_count() <= place || !lowering.parameter_needs_gradient(place)) {
    return nullptr;
  }
  const TensorView db = lowering.new_parameter_gradient(place);
  KernelNode& node = emit_bias_sum(lowering, dy, db, axis);
  lowering.give_parameter_gradient(place, db);
  return &node;
}

}  // namespace stowage
