// CudaLanes: a CUDA device as lanes (gpu_probe/lanes/lane_device.hpp), by the driver's interface.
//
// Three streams that do not wait for the default one. Events carry times. What the CPU's lane
// signals is a number in pinned memory, which streams wait for by cuStreamWaitValue64: no thread of
// the driver's blocks, and what is queued behind it stays queued. Needs a driver of CUDA 11.7.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gpu_probe/cuda/gpu_kernels.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/lanes/lane_device.hpp"

namespace stowage {

/// The device that the lanes are opened on, its context current.
struct OpenedDevice {
  const CudaDriver& driver;
  CudaDeviceNumber number = 0;
  std::string name;  ///< "NVIDIA H200"
  int compute_major = 0, compute_minor = 0;
};

/// Makes the kernels of a device; they are destroyed before its context.
using MakeGpuKernels = std::function<Result<std::unique_ptr<GpuKernels>>(const OpenedDevice&)>;

/// Opens a device by its number among those that CUDA shows. Errors: no driver, one that is too
/// old (the function that it lacks), no such device, a call that fails, what `make` says. `nvml`:
/// the library that memory() asks beside the driver.
[[nodiscard]] Result<std::unique_ptr<LaneDevice>> open_cuda_lanes(
    const std::string& library, int ordinal, const MakeGpuKernels& make,
    std::string nvml = "libnvidia-ml.so.1");

}  // namespace stowage
