// All kernels of a CUDA device: our own by NVRTC, products by cuBLAS, convolutions and, where it
// has it, attention by cuDNN, recurrent layers by cuBLAS with cells of our own. Each library is
// loaded when a kernel first needs it.
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

/// Where the libraries are, and what is kept.
struct CudaLibraries {
  std::vector<std::string> nvrtc, cublas;  ///< files to be tried one after another
  std::function<Result<const CudnnLibrary*>()> cudnn;
  std::string cache_folder;  ///< of compiled kernels; "": none
};

class CudaKernels final : public GpuKernels {
 public:
  /// What OpenedDevice refers to outlives this.
  CudaKernels(CudaLibraries libraries, const OpenedDevice& device)
      : libraries_(std::move(libraries)), device_(device) {}

  [[nodiscard]] Result<void> launch(const KernelCall& call, void* stream) override;
  [[nodiscard]] std::vector<std::string> remarks() const override;

 private:
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
  std::unique_ptr<CudnnConvolutions> cudnn_;
  std::unique_ptr<CudnnAttention> attention_;
  bool lacks_attention_ = false;  // cuDNN does not open: it is not asked again
};

}  // namespace stowage
