// Which convolutions PyTorch runs with kernels of its own, which want no workspace, instead of
// cuDNN's.
//
// Depthwise ones (not transposed; the outputs a multiple of as many groups as inputs) over
// contiguous tensors: conv_depthwise2d and conv_depthwise3d, but not where fp16 over two axes is
// known to be faster in cuDNN. The choice depends on the batch. (ATen/native/Convolution.cpp,
// use_cudnn_depthwise and check_cudnn_depthwise_workload_with_filter; compared with what PyTorch
// 2.15 itself chooses, tests/reference/convolution_backends.json.) Left out: bf16 before compute
// capability 8.0, where all convolutions are PyTorch's own, and tensors of 2^31 elements and more.
#pragma once

#include "estimator/memory/workspace_source.hpp"

namespace stowage {

/// `transposed`: the operator is a transposed convolution.
[[nodiscard]] bool is_native_in_pytorch(const ConvolutionQuery& query, bool transposed);

}  // namespace stowage
