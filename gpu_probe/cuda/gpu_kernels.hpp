// GpuKernels: how a kernel call becomes work on a CUDA stream. An interface, so that the lanes are
// tried with kernels that only count.
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

  /// Queues the call on a CUDA stream; the context is current. Errors name the kernel and the
  /// library's own words.
  [[nodiscard]] virtual Result<void> launch(const KernelCall& call, void* stream) = 0;
  /// Backend::remarks.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

}  // namespace stowage
