// CudaLanes: a CUDA device as lanes (gpu_probe/lanes/lane_device.hpp), through the driver's
// interface.
//
// A lane is a stream that does not wait for the default stream. Events carry times. signal() writes
// a count to pinned memory, which streams wait for by cuStreamWaitValue64, so that no thread of the
// driver blocks and work that is queued behind it stays queued. Needs a driver of CUDA 11.7 or
// later.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gpu_probe/cuda/gpu_kernels.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/lanes/lane_device.hpp"

namespace stowage {

/// The device that the lanes are opened on. Its context is current.
struct OpenedDevice {
  const CudaDriver& driver;
  CudaDeviceNumber number = 0;
  std::string name;  ///< "NVIDIA H200"
  int compute_major = 0, compute_minor = 0;
};

/// Makes the kernels of a device. They are destroyed before its context.
using MakeGpuKernels = std::function<Result<std::unique_ptr<GpuKernels>>(const OpenedDevice&)>;

/// Opens a device by its number among those that CUDA shows. Errors: no driver, a driver that is
/// too old (names the function that it lacks), no such device, a call that fails, the errors of
/// `make`. `nvml`: the library that memory() asks in addition to the driver.
[[nodiscard]] Result<std::unique_ptr<LaneDevice>> open_cuda_lanes(
    const std::string& library, int ordinal, const MakeGpuKernels& make,
    std::string nvml = "libnvidia-ml.so.1");

}  // namespace stowage
