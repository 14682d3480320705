#include "gpu_probe/cuda/cuda_kernels.hpp"

#include <fmt/format.h>

#include <utility>

#include "gpu_probe/kernels/rows/bias.hpp"
#include "gpu_probe/kernels/rows/rnn_work.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage {

using kernels::Arithmetic;

std::vector<std::string> CudaKernels::remarks() const {
  std::vector<std::string> all;
  if (convolutions_ != nullptr) all = convolutions_->remarks();
  if (attention_ != nullptr) {
    all.insert(all.end(), attention_->remarks().begin(), attention_->remarks().end());
  }
  return all;
}

Result<void> CudaKernels::launch_one(const kernels::Launch& launch, void* stream) {
  if (own_ == nullptr) {
    auto compiler = Nvrtc::open(libraries_.nvrtc);
    if (!compiler) return tl::unexpected(std::move(compiler.error()));
    own_ = std::make_unique<OwnKernels>(std::move(*compiler), device_, libraries_.cache_folder);
  }
  return own_->launch(launch, stream);
}

Result<void> CudaKernels::launch_own(const KernelCall& call, void* stream) {
  const auto launches = kernels::launches_of(call, Arithmetic::device);
  if (!launches) return tl::unexpected(launches.error());
  for (const kernels::Launch& launch : *launches) {
    if (auto ok = launch_one(launch, stream); !ok) return ok;
  }
  return {};
}

// For products with k = 0, which add nothing: c becomes beta * c, and beta is 0 or 1.
Result<void> CudaKernels::keep_or_clear(const kernels::Product& product, void* stream) const {
  if (product.beta != 0) return {};
  const auto bytes = static_cast<std::size_t>(product.m * product.n * element_size(product.c.type));
  for (std::int64_t i = 0; i < product.batch; ++i) {
    std::byte* const c = product.c.data + i * product.c.distance * element_size(product.c.type);
    const int error =
        device_.driver->queue_fill(reinterpret_cast<DevicePointer>(c), 0, bytes, stream);
    if (error != 0) return failure(fmt::format("cuMemsetD8Async fails with error {}", error));
  }
  return {};
}

// By cuBLAS; opens it at the first call.
Result<void> CudaKernels::multiply(const kernels::Product& product, const KernelCall& call,
                                   bool tf32, void* stream) {
  if (product.k == 0) return keep_or_clear(product, stream);
  if (cublas_ == nullptr) {
    auto opened = Cublas::open(libraries_.cublas);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    cublas_ = std::move(*opened);
  }
  return cublas_->run(product, {.stream = stream,
                                .workspace = call.workspace,
                                .workspace_bytes = call.workspace_bytes,
                                .tf32 = tf32});
}

// Never in TF32: PyTorch computes float32 products in TF32 only where a program asks for it
// (torch.backends.cuda.matmul), and a step has no setting for that.
Result<void> CudaKernels::launch_products(const KernelCall& call, void* stream) {
  const auto products = kernels::products_of(call);
  if (call.kernel == Kernel::linear_forward && call.reads.size() == 3) {
    const auto bias = kernels::rows_of_bias(call.writes[0], call.reads[2], Arithmetic::device);
    if (auto ok = launch_one(bias, stream); !ok) return ok;
  }
  for (const kernels::Product& product : products) {
    if (auto ok = multiply(product, call, false, stream); !ok) return ok;
  }
  return {};
}

// In TF32 where the call says so: PyTorch's recurrent layers follow cuDNN's setting.
Result<void> CudaKernels::launch_recurrent(const KernelCall& call, void* stream) {
  for (const auto& work : kernels::rnn_work(call)) {
    const auto* const product = std::get_if<kernels::Product>(&work);
    auto ok = product != nullptr ? multiply(*product, call, call.tf32, stream)
                                 : launch_one(std::get<kernels::Launch>(work), stream);
    if (!ok) return ok;
  }
  return {};
}

Result<const CudnnHandle*> CudaKernels::cudnn_handle(const CudnnLibrary& library) {
  if (cudnn_ == nullptr) {
    auto opened = CudnnHandle::open(library);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    cudnn_ = std::move(*opened);
  }
  return cudnn_.get();
}

Result<void> CudaKernels::launch_convolution(const KernelCall& call, void* stream) {
  const CalledConvolution called = called_convolution(call);
  if (convolutions_ == nullptr) {
    const auto library = libraries_.cudnn();
    if (!library) return tl::unexpected(library.error());
    const auto handle = cudnn_handle(**library);
    if (!handle) return tl::unexpected(handle.error());
    convolutions_ = std::make_unique<CudnnConvolutions>(**handle);
  }
  if (auto ok = convolutions_->run(called, call, stream); !ok) return ok;
  if (called.bias == nullptr) return {};
  return launch_one(kernels::bias_of_channels(call.writes[0], *called.bias, Arithmetic::device),
                    stream);
}

// cuDNN runs what it can take. Our own kernel runs every call that it does not take, so a missing
// cuDNN is no error.
Result<void> CudaKernels::launch_attention(const KernelCall& call, void* stream) {
  const bool suits = CudnnAttention::suits(call);
  if (suits && attention_ == nullptr && !lacks_cudnn_) {
    const auto library = libraries_.cudnn();
    if (library) {
      const auto handle = cudnn_handle(**library);
      if (!handle) return tl::unexpected(handle.error());
      attention_ = std::make_unique<CudnnAttention>(**handle, device_.driver);
    }
    lacks_cudnn_ = !library;
  }
  if (suits && attention_ != nullptr) {
    const auto taken = attention_->run(call, stream);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken) return {};
  }
  return launch_own(call, stream);
}

Result<void> CudaKernels::launch(const KernelCall& call, void* stream) {
  try {
    if (kernels::is_attention(call.kernel)) return launch_attention(call, stream);
    if (kernels::has_row(call.kernel)) return launch_own(call, stream);
    if (kernels::is_product(call.kernel)) return launch_products(call, stream);
    if (is_convolution(call.kernel)) return launch_convolution(call, stream);
    if (kernels::is_recurrent(call.kernel)) return launch_recurrent(call, stream);
  } catch (const kernels::KernelError& refusal) {
    return failure(fmt::format("{}: {}", to_string(call.kernel), refusal.what()));
  }
  return failure(fmt::format("{} does not run on a GPU yet", to_string(call.kernel)));
}

}  // namespace stowage
