// The CUDA backend: plans run on a GPU. It is the backend for lanes (../lanes/laned_backend.hpp)
// over a device's lanes (cuda_lanes.hpp) and its kernels (cuda_kernels.hpp). Nodes of the CPU run
// on the host's kernels.
#pragma once

#include <memory>
#include <string>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/cuda/cuda_kernels.hpp"

namespace stowage {

struct CudaSetup {
  std::string driver = "libcuda.so.1";
  int ordinal = 0;  ///< among the devices that CUDA shows
  CudaLibraries libraries;
};

/// The libraries as library_places() finds them. `cache_folder`: where compiled kernels are kept;
/// "": nowhere.
[[nodiscard]] CudaSetup default_cuda_setup(std::string cache_folder);

/// Errors: no driver, a driver that is too old, no such device, a call of the driver that fails. A
/// library is loaded only when a kernel first needs it, so a missing one is an error of run().
/// `stowage validate --on cuda` exits 3 where this fails, and never prints a pass.
[[nodiscard]] Result<std::unique_ptr<Backend>> open_cuda_backend(const CudaSetup& setup);

}  // namespace stowage
