// GpuKernels: launches a kernel call on a CUDA stream. It is an interface, so that tests can run
// the lanes with kernels that only count.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/backend/backend.hpp"

namespace stowage {

class GpuKernels {
 public:
  GpuKernels() = default;
  GpuKernels(const GpuKernels&) = delete;
  GpuKernels& operator=(const GpuKernels&) = delete;
  virtual ~GpuKernels() = default;

  /// Queues the call on a CUDA stream. Precondition: the context is current. Errors name the
  /// kernel, in the library's own words.
  [[nodiscard]] virtual Result<void> launch(const KernelCall& call, void* stream) = 0;
  /// As Backend::remarks.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace stowage
