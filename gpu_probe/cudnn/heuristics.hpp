// cuDNN's engines for a graph, in the order in which it would try them.
#pragma once

#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// The configurations of one list. Throws LibraryFailure.
[[nodiscard]] std::vector<CudnnDescriptor> engine_configurations(const CudnnLibrary& library,
                                                                 const CudnnTarget& target,
                                                                 const CudnnDescriptor& graph,
                                                                 cudnnBackendHeurMode_t mode);

/// Whether PyTorch would take an engine of such notes (filterEngineConfigs in
/// ATen/native/cudnn/Conv_v8.cpp).
[[nodiscard]] bool is_allowed(const std::vector<cudnnBackendNumericalNote_t>& notes,
                              const ConvolutionQuery& query);

/// The engine of a configuration, and how plans name the two (engine_name.hpp).
[[nodiscard]] CudnnDescriptor engine_of(const CudnnLibrary& library,
                                        const CudnnDescriptor& configuration);
[[nodiscard]] std::string engine_name(const CudnnLibrary& library,
                                      const CudnnDescriptor& configuration,
                                      const CudnnDescriptor& engine);

}  // namespace stowage
