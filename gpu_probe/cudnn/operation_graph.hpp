// Questions as cuDNN's operation graphs, described as PyTorch describes them to it
// (ATen/native/cudnn/Conv_v8.cpp). For the sources that are built with cuDNN's headers only.
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

/// Tensors are aligned to 16 bytes; half types are computed in float32. Throws LibraryFailure.
[[nodiscard]] CudnnDescriptor convolution_graph(const CudnnLibrary& library,
                                                const ConvolutionQuery& query);

}  // namespace stowage
