// What a machine with a GPU would run of a plan: for those who have none at hand.
#pragma once

#include <cstdint>

#include "planner/plan/plan.hpp"

namespace stowage {

/// Nodes of one step, by whose kernels they call.
struct CudaWork {
  std::int64_t own = 0;     ///< our kernels, compiled by NVRTC
  std::int64_t cublas = 0;  ///< matrix products, and recurrent layers, whose cells are our own
  std::int64_t cudnn = 0;   ///< convolutions, and attention for which the plan names an engine
  std::int64_t none = 0;    ///< placed on the GPU, and without a kernel for it
  std::int64_t cpu = 0;     ///< the host's kernels, of nodes that are placed on the CPU
};

/// As CudaKernels would launch them; of types it says nothing. Precondition: check_structure.
[[nodiscard]] CudaWork cuda_work(const Plan& plan);

}  // namespace stowage
