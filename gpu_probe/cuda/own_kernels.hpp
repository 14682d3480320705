// OwnKernels: our own kernels on a device. A kernel is compiled when it is first launched, and
// kept.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_probe/cuda/cuda_lanes.hpp"
#include "gpu_probe/cuda/kernel_cache.hpp"
#include "gpu_probe/cuda/nvrtc.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"

namespace stowage {

class OwnKernels {
 public:
  /// `cache_folder`: "": compiled kernels are not kept for the next run. The device outlives this.
  OwnKernels(Nvrtc compiler, const OpenedDevice& device, std::string cache_folder);
  OwnKernels(const OwnKernels&) = delete;
  OwnKernels& operator=(const OwnKernels&) = delete;
  ~OwnKernels();

  /// Queues a launch. Precondition: the device's context is current. Errors: NVRTC's log, a call of
  /// the driver that fails.
  [[nodiscard]] Result<void> launch(const kernels::Launch& launch, void* stream);

 private:
  [[nodiscard]] Result<void*> function_of(const kernels::Launch& launch);
  [[nodiscard]] Result<void*> load(const std::string& function);
  [[nodiscard]] Result<void> done(int error, const char* call) const;

  Nvrtc compiler_;
  const CudaDriver& driver_;
  std::string architecture_;
  KernelCache cache_;
  // By body, and whether threads share an index.
  std::map<std::pair<std::string_view, bool>, void*> functions_;
  std::vector<void*> modules_;
};

}  // namespace stowage
