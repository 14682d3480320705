// Copies of saved tensors to host memory and back, as nodes of a step
// (rewrite/offload_activations.hpp): their kernels' names, and what they take on the host.
#pragma once

#include <string_view>

#include "estimator/base/affine.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

inline constexpr std::string_view offload_kernel = "offload", fetch_kernel = "fetch";

/// Pinned host memory of all tensors that the step offloads: all are there when backward begins.
[[nodiscard]] Affine offloaded_bytes(const StepGraph& step);

}  // namespace stowage
