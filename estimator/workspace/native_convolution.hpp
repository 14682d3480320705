// Convolutions that PyTorch runs with its own kernels instead of cuDNN's, and the memory of these
// kernels.
//
// Depthwise convolutions (not transposed; as many groups as input channels, of which the output
// channels are a multiple) of contiguous tensors use conv_depthwise2d and conv_depthwise3d, except
// for two axes in fp16 where cuDNN is known to be faster. The choice depends on the batch.
// (ATen/native/Convolution.cpp, use_cudnn_depthwise and check_cudnn_depthwise_workload_with_filter;
// compared with what PyTorch 2.15 itself chooses, tests/reference/convolution_backends.json.) They
// need no workspace. Not modelled: tensors of 2^31 elements and more.
//
// All other convolutions in bf16 below compute capability 8.0, for which cuDNN has none, use
// slow_conv2d, slow_conv_dilated2d and 3d, slow_conv_transpose2d and 3d: each sample in turn is
// unfolded into columns and multiplied. Grouped ones run group by group, each on copies of its part
// of the operands, and the groups' results are concatenated at the end
// (ATen/native/Convolution.cpp).
#pragma once

#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// `transposed`: the operator is a transposed convolution.
[[nodiscard]] bool is_native_in_pytorch(const ConvolutionQuery& query, bool transposed);

/// Whether PyTorch unfolds it. Precondition: it does not use a depthwise kernel.
[[nodiscard]] bool is_unfolded_in_pytorch(const ConvolutionQuery& query, double compute_capability);
/// The bytes of one sample's columns, and of the copies of a grouped convolution. 0 if the columns
/// are the sample itself: two axes with windows of 1, without stride or padding.
[[nodiscard]] Bytes unfolding_bytes(const ConvolutionQuery& query, bool transposed);

}  // namespace stowage
