// A convolution as cuDNN's operation graph, in the way PyTorch describes it
// (ATen/native/cudnn/Conv_v8.cpp).
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// The ids of a convolution's tensors. Whoever executes the graph gives their addresses.
inline constexpr std::int64_t id_of_x = 'x', id_of_w = 'w', id_of_y = 'y';

/// Tensors are aligned to 16 bytes. 16-bit formats are computed in float32. Throws LibraryFailure.
[[nodiscard]] CudnnDescriptor convolution_graph(const CudnnLibrary& library,
                                                const ConvolutionQuery& query,
                                                const CudnnTarget& target = {});

}  // namespace stowage
