// What each kernel of a step takes on a backend, timed by itself: for rates, not for a plan.
//
// Kernels that are alike (the same call of the same shapes) are timed once. A kernel's arguments
// lie one after another at the arena's front and hold zeros, which every kernel takes: as an index
// the first row, as a mask nothing. The first call warms up; of the others the median counts, by
// the backend's own events.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

struct KernelTime {
  NodeId node;  ///< the first of those that are alike
  double seconds = 0;
};

struct KernelTimes {
  std::vector<KernelTime> times;  ///< by node
  std::int64_t left_out = 0;      ///< alike counted once: they do not fit into `most`
};

/// On the backend's GPU; the plan's arenas, if any, are gone. `workspace`: what a convolution may
/// have, whose engine is the library's first choice within it. Kernels whose arguments and
/// workspace need more than `most` are left out. Errors: the backend's; a kernel that it does not
/// have.
[[nodiscard]] Result<KernelTimes> time_kernels(const SizedStep& step, Backend& backend,
                                               Bytes workspace, Bytes most);

}  // namespace stowage
