// LanedBackend: a backend over a device that has lanes (lane_device.hpp), on which copies really
// run beside kernels.
//
// Kernels of the GPU are queued on the compute lane, copies on the lane of their direction. A lane
// waits for another by events, and only where it is told to. Kernels of the CPU run on a thread of
// their own, each after an event of the compute lane. Work that waits for them waits for a signal,
// which comes even if a kernel fails, so that no lane waits for ever. Both arenas are allocated
// once for a run. Bytes that are set, poisoned or read for a comparison are copied on the compute
// lane.
#pragma once

#include <memory>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/host/kernel_lane.hpp"
#include "gpu_probe/lanes/lane_device.hpp"

namespace stowage {

/// The CPU's lane calls `run_on_cpu`.
[[nodiscard]] std::unique_ptr<Backend> laned_backend(std::unique_ptr<LaneDevice> device,
                                                     RunKernel run_on_cpu = run_host_kernel);

}  // namespace stowage
