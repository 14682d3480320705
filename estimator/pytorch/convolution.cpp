#include "estimator/pytorch/convolution.hpp"

#include <utility>

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
TensorLayout layout_of_call(const TensorView& x, const TensorView& w, const TensorView& y) {
  const bool channels_last =
      x.type != DataType::float64 &&
      (suggests_channels_last(x) || suggests_channels_last(w) || suggests_channels_last(y));
  return channels_last ? TensorLayout::channels_last : TensorLayout::contiguous;
}

}  // namespace

bool convolves_channels_last(const TensorView& input, const TensorView& filter) {
  if (input.type == DataType::float64) return false;
  return suggests_channels_last(input) || suggests_channels_last(filter);
}

ConvolutionCall convolution_call(ConvolutionWindow window, ConvolutionCall::Direction direction,
                                 const TensorView& x, const TensorView& w, const TensorView& y) {
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
                           .layout = layout_of_call(a, b, c),
                           .window = Shared(std::move(window))};
  };
  return flat ? call(with_height(x), with_height(w), with_height(y)) : call(x, w, y);
}

Affine convolution_flops(const TensorView& w, const TensorView& y) {
  Affine taps = 1;
  for (std::size_t i = 1; i < w.shape.size(); ++i) taps = taps * w.shape[i];
  return element_count(y.shape) * Affine(2) * taps;
}

}  // namespace stowage
