// HostBackend: runs a plan's step on the CPU, with an arena in host memory in the GPU's place.
//
// The arena has the planned size and lies between two inaccessible pages; its end, in units of 64
// bytes, is the beginning of the second page. A kernel that writes past the arena's end stops the
// program there and then instead of spoiling other memory. (Errors within the arena are found by
// the canaries of the padded run: executor.hpp.)
//
// The GPU's kernels run when they are called, the CPU's kernels on a thread of their own
// (kernel_lane.hpp). Copies run early or late, as set_copy_timing says: each lane in its order, and
// each copy after the tickets that it waits for. A kernel that has a workspace overwrites all of
// it: the host's kernels need none, but a GPU's kernels may use all of theirs.
#pragma once

#include <memory>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// Errors: the host kernels do not load.
[[nodiscard]] Result<std::unique_ptr<Backend>> open_host_backend();

}  // namespace stowage
