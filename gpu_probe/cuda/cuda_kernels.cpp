#include "gpu_probe/cuda/cuda_kernels.hpp"

#include <fmt/format.h>

#include <utility>

#include "gpu_probe/kernels/rows/bias.hpp"
#include "gpu_probe/kernels/rows/rows.hpp"

namespace stowage {

using kernels::Arithmetic;

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

// A sum of no terms: c becomes beta c, and beta is 0 or 1.
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

Result<void> CudaKernels::launch_products(const KernelCall& call, void* stream) {
  const auto products = kernels::products_of(call);
  if (cublas_ == nullptr) {
    auto opened = Cublas::open(libraries_.cublas);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    cublas_ = std::move(*opened);
  }
  if (call.kernel == Kernel::linear_forward && call.reads.size() == 3) {
    const auto bias = kernels::rows_of_bias(call.writes[0], call.reads[2], Arithmetic::device);
    if (auto ok = launch_one(bias, stream); !ok) return ok;
  }
  for (const kernels::Product& product : products) {
    if (product.k == 0) {
      if (auto ok = keep_or_clear(product, stream); !ok) return ok;
      continue;
    }
    auto ok = cublas_->run(
        product,
        {.stream = stream, .workspace = call.workspace, .workspace_bytes = call.workspace_bytes});
    if (!ok) return ok;
  }
  return {};
}

Result<void> CudaKernels::launch_convolution(const KernelCall& call, void* stream) {
  const CalledConvolution called = called_convolution(call);
  if (cudnn_ == nullptr) {
    const auto library = libraries_.cudnn();
    if (!library) return tl::unexpected(library.error());
    auto opened = CudnnConvolutions::open(**library);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    cudnn_ = std::move(*opened);
  }
  if (auto ok = cudnn_->run(called, call, stream); !ok) return ok;
  if (called.bias == nullptr) return {};
  return launch_one(kernels::bias_of_channels(call.writes[0], *called.bias, Arithmetic::device),
                    stream);
}

Result<void> CudaKernels::launch(const KernelCall& call, void* stream) {
  try {
    if (kernels::has_row(call.kernel)) return launch_own(call, stream);
    if (kernels::is_product(call.kernel)) return launch_products(call, stream);
    if (is_convolution(call.kernel)) return launch_convolution(call, stream);
  } catch (const kernels::KernelError& refusal) {
    return failure(fmt::format("{}: {}", to_string(call.kernel), refusal.what()));
  }
  return failure(fmt::format("{} does not run on a GPU yet", to_string(call.kernel)));
}

}  // namespace stowage
