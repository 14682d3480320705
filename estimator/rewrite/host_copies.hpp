// Nodes that copy a whole storage to host memory and back, as rewrites of a step insert them.
#pragma once

#include <string_view>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The storage as bytes.
[[nodiscard]] TensorView whole_storage(const StepGraph& step, StorageId storage);

/// A call of offload_kernel that reads `from`, or of fetch_kernel that writes `to`. `owner` names
/// the node: "conv1" makes "conv1.to_host", "conv1.from_host".
[[nodiscard]] KernelNode copy_to_host(const StepGraph& step, StorageId from, std::string_view owner,
                                      Phase phase);
[[nodiscard]] KernelNode copy_from_host(const StepGraph& step, StorageId to, std::string_view owner,
                                        Phase phase);

}  // namespace stowage
