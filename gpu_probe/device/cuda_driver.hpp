// The devices that the CUDA driver shows. The driver is loaded when it is asked, so the program is
// built without CUDA's headers and starts without a driver.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct CudaDevice {
  std::string name;  ///< "NVIDIA H200"
  int compute_major = 0;
  int compute_minor = 0;
  std::int64_t total_bytes = 0;
};

/// Errors: there is no libcuda.so.1 (the loader's words); it lacks a function; a call fails (its
/// name, the driver's number and words); the driver shows no device.
[[nodiscard]] Result<std::vector<CudaDevice>> cuda_devices();

}  // namespace stowage
