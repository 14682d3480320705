// A kernel call of a convolution as the query that cuDNN is asked, with the addresses of its
// tensors.
//
// A transposed convolution is the data gradient of the convolution with the same weight. So its
// three kernels are the convolution's three, with the roles of the tensors exchanged. A convolution
// over one spatial axis becomes a 2-D convolution of height 1, as plans ask cuDNN about it.
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// Whether it is one of the three kernels of convolutions or of transposed convolutions.
[[nodiscard]] bool is_convolution(Kernel kernel);

struct CalledConvolution {
  ConvolutionQuery query;
  std::byte *x = nullptr, *w = nullptr, *y = nullptr;  ///< the convolution's own tensors
  const TensorArgument* bias = nullptr;                ///< added to the result; null: none
};

/// Throws KernelError where shapes or attributes do not fit. Precondition:
/// is_convolution(call.kernel). The call's arguments outlive the result.
[[nodiscard]] CalledConvolution called_convolution(const KernelCall& call);

}  // namespace stowage
