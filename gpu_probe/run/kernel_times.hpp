// Times each kernel of a step by itself on a backend. The times are for fitting rates, not for a
// plan.
//
// Equal calls (the same kernel with the same shapes) are timed once. The arguments lie one after
// another at the arena's beginning and are 0, which every kernel accepts: an index of 0 is the
// first row, a mask of 0 is empty. The first call warms up. The time is the median of the other
// calls, by the backend's own events.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "gpu_probe/backend/backend.hpp"

namespace stowage {

struct KernelTime {
  NodeId node;  ///< the first of the equal calls
  double seconds = 0;
};

struct KernelTimes {
  std::vector<KernelTime> times;  ///< by node
  std::int64_t left_out = 0;      ///< calls that do not fit into `most`; equal ones count once
};

/// Runs the kernels on the backend's GPU, in arenas of its own: those of a plan are gone
/// afterwards. `workspace`: the most that a convolution may have; its engine is the library's first
/// choice within that. Kernels whose arguments and workspace need more than `most` are left out.
/// Errors: the backend's; a kernel that it does not have.
[[nodiscard]] Result<KernelTimes> time_kernels(const SizedStep& step, Backend& backend,
                                               Bytes workspace, Bytes most);

}  // namespace stowage
