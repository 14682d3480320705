// CudaNodeCounts: whose kernels the nodes of a plan would call on a machine with a GPU. Needs no
// GPU.
#pragma once

#include <cstdint>

#include "planner/plan/plan.hpp"

namespace stowage {

/// Numbers of nodes in one step.
struct CudaNodeCounts {
  std::int64_t own = 0;     ///< our kernels, compiled by NVRTC
  std::int64_t cublas = 0;  ///< matrix products, and recurrent layers (their cells are ours)
  std::int64_t cudnn = 0;   ///< convolutions, and attention for which the plan names an engine
  std::int64_t none = 0;    ///< placed on the GPU, which has no kernel for them
  std::int64_t cpu = 0;     ///< placed on the CPU, which runs the host's kernels
};

/// As CudaKernels would launch them, whatever the types of their arguments. Precondition:
/// check_structure(plan) passed.
[[nodiscard]] CudaNodeCounts count_cuda_nodes(const Plan& plan);

}  // namespace stowage
