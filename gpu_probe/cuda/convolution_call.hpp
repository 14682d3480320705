// A kernel call of a convolution as the question that cuDNN is asked, and its tensors.
//
// A transposed convolution is the data gradient of the convolution with the same weight, so its
// three kernels are the convolution's with the tensors' parts exchanged. Over one spatial axis it
// is a 2-D convolution of height 1, as plans ask cuDNN about it.
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// convolution_forward, transposed_convolution_backward_filter and so on.
[[nodiscard]] bool is_convolution(Kernel kernel);

struct CalledConvolution {
  ConvolutionQuery query;
  std::byte *x = nullptr, *w = nullptr, *y = nullptr;  ///< the convolution's own
  const TensorArgument* bias = nullptr;                ///< added to what the call writes; or null
};

/// KernelError where shapes or attributes do not suit. Precondition: is_convolution(call.kernel);
/// the call's arguments outlive the result.
[[nodiscard]] CalledConvolution called_convolution(const KernelCall& call);

}  // namespace stowage
