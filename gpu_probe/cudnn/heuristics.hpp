// Asks cuDNN's heuristics: which engines run a graph, in the order in which cuDNN would try them.
#pragma once

#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// The configurations in the list of one heuristic mode. Throws LibraryFailure.
[[nodiscard]] std::vector<CudnnDescriptor> engine_configurations(const CudnnLibrary& library,
                                                                 const CudnnTarget& target,
                                                                 const CudnnDescriptor& graph,
                                                                 cudnnBackendHeurMode_t mode);

/// Whether PyTorch would take an engine with these notes (filterEngineConfigs in
/// ATen/native/cudnn/Conv_v8.cpp).
[[nodiscard]] bool is_allowed(const std::vector<cudnnBackendNumericalNote_t>& notes,
                              const ConvolutionQuery& query);

/// The engine of a configuration, and the name that plans give to both (engine_name.hpp).
[[nodiscard]] CudnnDescriptor engine_of(const CudnnLibrary& library,
                                        const CudnnDescriptor& configuration);
[[nodiscard]] std::string engine_name(const CudnnLibrary& library,
                                      const CudnnDescriptor& configuration,
                                      const CudnnDescriptor& engine);

}  // namespace stowage
