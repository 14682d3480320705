// HostBackend: a plan's step on the CPU, the "GPU" being an arena in host memory.
//
// The arena of the planned size lies in a mapping of its own between inaccessible pages, its end
// (in units of 64 bytes) against the second: a kernel that runs over the arena's end dies there and
// then rather than spoil what lies behind. (Within the arena, the padded run's canaries tell:
// executor.hpp.) The GPU's kernels run when they are called, the CPU's on a thread of their own
// (kernel_lane.hpp); copies run early or late, as set_copy_timing says, each lane in its order and
// after what it was told to wait for. A workspace is overwritten by each kernel that has one: the
// host kernels need none, but a GPU's may use all of it.
#pragma once

#include <memory>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

/// Errors: the host kernels do not load.
[[nodiscard]] Result<std::unique_ptr<Backend>> open_host_backend();

}  // namespace stowage
