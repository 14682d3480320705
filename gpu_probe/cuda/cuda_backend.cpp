#include "gpu_probe/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include "estimator/base/cure.hpp"
#include "gpu_probe/device/cuda_driver.hpp"

namespace stowage {

Result<std::unique_ptr<Backend>> open_cuda_backend() {
  const auto devices = cuda_devices();
  if (!devices) return tl::unexpected(devices.error());
  return failure(
      fmt::format("the cuda backend runs no kernels yet ({} is there)", devices->front().name),
      hint_of(Cure::host_execution));
}

}  // namespace stowage
