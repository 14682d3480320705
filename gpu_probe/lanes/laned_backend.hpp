// A backend over whatever device has lanes (lane_device.hpp): where plans run beside real copies.
//
// Kernels of the GPU are queued on the compute lane, copies on theirs; a lane waits for another by
// events, and exactly where it is told to. Kernels of the CPU run on a thread of their own, each
// after an event of the compute lane; what waits for them waits for a signal, which comes even when
// a kernel fails, so that no lane waits for ever. Both arenas are allocated once a run. Bytes that
// are set up, poisoned or read for a comparison go over the compute lane.
#pragma once

#include <memory>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/host/kernel_lane.hpp"
#include "gpu_probe/lanes/lane_device.hpp"

namespace stowage {

/// `run_on_cpu` is called from the CPU's lane.
[[nodiscard]] std::unique_ptr<Backend> laned_backend(std::unique_ptr<LaneDevice> device,
                                                     RunKernel run_on_cpu = run_host_kernel);

}  // namespace stowage
