// An engine that a plan names, made again: what cuDNN executes.
#pragma once

#include <cstdint>
#include <span>

#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// The finalised configuration of an engine for a graph that was made for the same target: the
/// engine with its knobs. Throws LibraryFailure where this cuDNN has no such engine for the graph,
/// or refuses a knob.
[[nodiscard]] CudnnDescriptor engine_configuration(const CudnnLibrary& library,
                                                   const CudnnTarget& target,
                                                   const CudnnDescriptor& graph,
                                                   const EngineName& name);

/// The finalised execution plan of an engine for a graph that was made for the same target. Throws
/// LibraryFailure where this cuDNN has no such engine for the graph, refuses a knob, or cannot
/// build it.
[[nodiscard]] CudnnDescriptor engine_plan(const CudnnLibrary& library, const CudnnTarget& target,
                                          const CudnnDescriptor& graph, const EngineName& name);

/// The same of a configuration that heuristics gave; not yet finalised.
[[nodiscard]] CudnnDescriptor unfinished_plan(const CudnnLibrary& library,
                                              const CudnnTarget& target,
                                              const CudnnDescriptor& configuration);

/// What a plan is executed on: tensors by their ids (operation_graph.hpp), and the workspace, which
/// may be null. Finalised; addresses are not looked at before it is executed. Throws
/// LibraryFailure.
[[nodiscard]] CudnnDescriptor variant_pack(const CudnnLibrary& library,
                                           std::span<const std::int64_t> ids,
                                           std::span<void* const> addresses, void* workspace);

/// Bytes of scratch that a finalised execution plan wants.
[[nodiscard]] std::int64_t workspace_of(const CudnnDescriptor& plan);

}  // namespace stowage
