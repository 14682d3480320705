#include "gpu_probe/cuda/cuda_backend.hpp"

#include <utility>

#include "gpu_probe/driver/library_places.hpp"
#include "gpu_probe/lanes/laned_backend.hpp"

namespace stowage {
namespace {

/// The major version of the newest CUDA that the driver can run; 0: there is no driver, or it does
/// not tell.
int served_cuda_version(const CudaDriver& driver) {
  int version = 0;
  if (!driver.is_there() || !driver.lacking_query().empty()) return 0;
  return driver->version(&version) == 0 ? version / 1000 : 0;
}

}  // namespace

CudaSetup default_cuda_setup(std::string cache_folder) {
  CudaSetup setup;
  const int served = served_cuda_version(CudaDriver(setup.driver));
  setup.libraries = {.nvrtc = library_places(NvidiaLibrary::nvrtc, served),
                     .cublas = library_places(NvidiaLibrary::cublas_lt, served),
                     .cudnn = cudnn_library,
                     .cache_folder = std::move(cache_folder)};
  return setup;
}

Result<std::unique_ptr<Backend>> open_cuda_backend(const CudaSetup& setup) {
  auto lanes =
      open_cuda_lanes(setup.driver, setup.ordinal,
                      [&](const OpenedDevice& device) -> Result<std::unique_ptr<GpuKernels>> {
                        return std::make_unique<CudaKernels>(setup.libraries, device);
                      });
  if (!lanes) return tl::unexpected(std::move(lanes.error()));
  return laned_backend(std::move(*lanes));
}

}  // namespace stowage
