// How PyTorch calls a convolution: its memory layout, the query for a WorkspaceSource, and its
// operations. Used for a description's operators and for recorded ATen calls.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Whether a convolution runs with channels last: if the input or the filter has that layout
/// (ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format, which excludes float64). Never in
/// our executor, whose tensors are contiguous.
[[nodiscard]] bool convolves_channels_last(const TensorView& input, const TensorView& filter);

/// The query for a WorkspaceSource. x, w, y: the tensors of the convolution itself, in every
/// direction. With one spatial axis it is a 2-D convolution of height 1, as PyTorch runs it (view4d
/// in ATen/native/Convolution.cpp).
[[nodiscard]] ConvolutionCall convolution_call(ConvolutionWindow window,
                                               ConvolutionCall::Direction direction,
                                               const TensorView& x, const TensorView& w,
                                               const TensorView& y);

/// 2 * (elements of y) * (taps of a filter).
[[nodiscard]] Affine convolution_flops(const TensorView& w, const TensorView& y);

}  // namespace stowage
