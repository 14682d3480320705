// A bound on what crosses PCIe where some parameters are updated on the CPU.
#pragma once

#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// No choice of parameters that are updated on the CPU and of saved tensors that lie there moves
/// fewer bytes, there and back, and takes `excess` bytes off the GPU. A parameter takes its state,
/// its gradient and what its update makes off it, each as large as the allocator rounds it, and
/// crosses as its gradient and its value; a saved tensor takes itself off, and crosses twice.
/// Those that take most off for a byte that crosses come first, the last one in part. `step`: as
/// the script runs it. O(storages + parameters * log parameters).
[[nodiscard]] Bytes bound_of_updates(const SizedStep& step, Bytes excess);

}  // namespace stowage
