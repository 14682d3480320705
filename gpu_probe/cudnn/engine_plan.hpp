// Execution plans of cuDNN: from an engine's name or configuration to what a handle executes.
#pragma once

#include <cstdint>
#include <span>

#include "gpu_probe/cudnn/engine_name.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// An execution plan, and the operation graph that it is of.
struct CudnnPlan {
  CudnnDescriptor graph, plan;
};

/// The finalised configuration of an engine: the engine with its knobs. The graph was made for the
/// same target. Throws LibraryFailure where this cuDNN has no such engine for the graph, or refuses
/// a knob.
[[nodiscard]] CudnnDescriptor engine_configuration(const CudnnLibrary& library,
                                                   const CudnnTarget& target,
                                                   const CudnnDescriptor& graph,
                                                   const EngineName& name);

/// The finalised execution plan of an engine. The graph was made for the same target. Throws
/// LibraryFailure where this cuDNN has no such engine for the graph, refuses a knob, or cannot
/// build the plan.
[[nodiscard]] CudnnDescriptor engine_plan(const CudnnLibrary& library, const CudnnTarget& target,
                                          const CudnnDescriptor& graph, const EngineName& name);

/// The execution plan of a configuration that heuristics gave. The caller finalises it.
[[nodiscard]] CudnnDescriptor unfinished_plan(const CudnnLibrary& library,
                                              const CudnnTarget& target,
                                              const CudnnDescriptor& configuration);

/// What a plan is executed on: the addresses of tensors by their ids (operation_graph.hpp), and the
/// workspace's, which may be null. Finalised. cuDNN reads the addresses when the plan is executed.
/// Throws LibraryFailure.
[[nodiscard]] CudnnDescriptor variant_pack(const CudnnLibrary& library,
                                           std::span<const std::int64_t> ids,
                                           std::span<void* const> addresses, void* workspace);

/// Bytes of workspace that a finalised execution plan needs.
[[nodiscard]] std::int64_t workspace_of(const CudnnDescriptor& plan);

}  // namespace stowage
