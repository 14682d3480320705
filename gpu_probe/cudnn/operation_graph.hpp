// Questions as cuDNN's operation graphs, described as PyTorch describes them to it
// (ATen/native/cudnn/Conv_v8.cpp). For the sources that are built with cuDNN's headers only.
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// The ids of a convolution's tensors, for who executes it.
inline constexpr std::int64_t id_of_x = 'x', id_of_w = 'w', id_of_y = 'y';

/// Tensors are aligned to 16 bytes; half types are computed in float32. Throws LibraryFailure.
[[nodiscard]] CudnnDescriptor convolution_graph(const CudnnLibrary& library,
                                                const ConvolutionQuery& query,
                                                const CudnnTarget& target = {});

}  // namespace stowage
