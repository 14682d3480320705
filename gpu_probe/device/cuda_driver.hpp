// The CUDA driver, loaded when it is asked for, so that the program starts where there is none and
// is built without CUDA's headers.
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

/// The devices that the driver shows. Errors: there is no libcuda.so.1 (the loader's words); it
/// lacks an entry point; a call of it fails (which, and the driver's number and words); it shows no
/// device.
[[nodiscard]] Result<std::vector<CudaDevice>> cuda_devices();

}  // namespace stowage
