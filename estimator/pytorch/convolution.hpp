// A convolution as PyTorch calls it: in which layout, what it asks a WorkspaceSource, how much it
// computes. Of the description's operators and of recorded ATen calls alike.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Whether a convolution works with the channels innermost: the input's layout or the filter's is
/// enough (ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format, which leaves float64 out).
/// Never in our executor, whose tensors are contiguous.
[[nodiscard]] bool convolves_channels_last(const TensorView& input, const TensorView& filter);

/// The question for a WorkspaceSource. x, w, y: the convolution's own. Over one spatial axis it is
/// that of a 2-D convolution of height 1, as which PyTorch runs it (view4d in
/// ATen/native/Convolution.cpp).
[[nodiscard]] ConvolutionCall convolution_call(ConvolutionWindow window,
                                               ConvolutionCall::Direction direction,
                                               const TensorView& x, const TensorView& w,
                                               const TensorView& y);

/// 2 * elements of y * taps of a filter.
[[nodiscard]] Affine convolution_flops(const TensorView& w, const TensorView& y);

}  // namespace stowage
