// Which convolutions PyTorch runs with kernels of its own instead of cuDNN's, and what these take.
//
// Depthwise ones (not transposed; the outputs a multiple of as many groups as inputs) over
// contiguous tensors: conv_depthwise2d and conv_depthwise3d, but not where fp16 over two axes is
// known to be faster in cuDNN. The choice depends on the batch. (ATen/native/Convolution.cpp,
// use_cudnn_depthwise and check_cudnn_depthwise_workload_with_filter; compared with what PyTorch
// 2.15 itself chooses, tests/reference/convolution_backends.json.) They want no workspace. Left
// out: tensors of 2^31 elements and more.
//
// All other convolutions in bf16 before compute capability 8.0, where cuDNN has none (slow_conv2d,
// slow_conv_dilated2d and 3d, slow_conv_transpose2d and 3d): a sample at a time is unfolded into
// columns and multiplied. Grouped ones go group by group, each over copies of its share of the
// operands, and the groups' results are joined at the end (ATen/native/Convolution.cpp).
#pragma once

#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// `transposed`: the operator is a transposed convolution.
[[nodiscard]] bool is_native_in_pytorch(const ConvolutionQuery& query, bool transposed);

/// Whether PyTorch unfolds it, given that it is not one of the depthwise kernels'.
[[nodiscard]] bool is_unfolded_in_pytorch(const ConvolutionQuery& query, double compute_capability);
/// The columns of one sample, and what a grouped one copies. None where the columns are the sample:
/// windows of 1 over two axes, without stride or padding.
[[nodiscard]] Bytes unfolding_bytes(const ConvolutionQuery& query, bool transposed);

}  // namespace stowage
