// CudaKernels: all kernels of a CUDA device.
//
// NVRTC compiles our own kernels, cuBLAS computes products, cuDNN computes convolutions and the
// calls of attention that it can take. A recurrent layer is products by cuBLAS and cells of our
// own. Each library is loaded when a kernel first needs it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu_probe/cuda/cublas.hpp"
#include "gpu_probe/cuda/cuda_lanes.hpp"
#include "gpu_probe/cuda/cudnn_attention.hpp"
#include "gpu_probe/cuda/cudnn_convolutions.hpp"
#include "gpu_probe/cuda/own_kernels.hpp"

namespace stowage {

/// Where the libraries are looked for, and where compiled kernels are kept.
struct CudaLibraries {
  std::vector<std::string> nvrtc, cublas;  ///< files, tried in this order
  std::function<Result<const CudnnLibrary*>()> cudnn;
  std::string cache_folder;  ///< for compiled kernels; "": they are not kept
};

class CudaKernels final : public GpuKernels {
 public:
  /// The driver that `device` refers to outlives this.
  CudaKernels(CudaLibraries libraries, const OpenedDevice& device)
      : libraries_(std::move(libraries)), device_(device) {}

  [[nodiscard]] Result<void> launch(const KernelCall& call, void* stream) override;
  [[nodiscard]] std::vector<std::string> remarks() const override;

 private:
  /// The handle that convolutions and attention share; opened at the first call.
  [[nodiscard]] Result<const CudnnHandle*> cudnn_handle(const CudnnLibrary& library);

  [[nodiscard]] Result<void> launch_own(const KernelCall& call, void* stream);
  [[nodiscard]] Result<void> keep_or_clear(const kernels::Product& product, void* stream) const;
  [[nodiscard]] Result<void> launch_products(const KernelCall& call, void* stream);
  [[nodiscard]] Result<void> launch_convolution(const KernelCall& call, void* stream);
  [[nodiscard]] Result<void> launch_recurrent(const KernelCall& call, void* stream);
  [[nodiscard]] Result<void> multiply(const kernels::Product& product, const KernelCall& call,
                                      bool tf32, void* stream);
  [[nodiscard]] Result<void> launch_attention(const KernelCall& call, void* stream);
  [[nodiscard]] Result<void> launch_one(const kernels::Launch& launch, void* stream);

  CudaLibraries libraries_;
  OpenedDevice device_;
  std::unique_ptr<OwnKernels> own_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<CudnnHandle> cudnn_;
  std::unique_ptr<CudnnConvolutions> convolutions_;
  std::unique_ptr<CudnnAttention> attention_;
  bool lacks_cudnn_ = false;  // it did not load for attention, which does not ask for it again
};

}  // namespace stowage
