// An engine that a plan names, made again: what cuDNN executes.
#pragma once

#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

/// The finalised execution plan of an engine for a graph, on a device that is described or present
/// (`device`: a finalised CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Throws LibraryFailure where this
/// cuDNN has no such engine for the graph, refuses a knob, or cannot build it.
[[nodiscard]] CudnnDescriptor engine_plan(const CudnnLibrary& library,
                                          const CudnnDescriptor& device,
                                          const CudnnDescriptor& graph, const EngineName& name);

/// Bytes of scratch that a finalised execution plan wants.
[[nodiscard]] std::int64_t workspace_of(const CudnnDescriptor& plan);

}  // namespace stowage
