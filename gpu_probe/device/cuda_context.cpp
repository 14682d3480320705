#include "gpu_probe/device/cuda_context.hpp"

#include "gpu_probe/driver/driver_presence.hpp"
#include "gpu_probe/driver/library_failure.hpp"

namespace stowage {

namespace {

constexpr int lazy_loading = 2;  // CU_MODULE_LAZY_LOADING

}  // namespace

CudaContext::CudaContext(const std::string& library, const std::string& pci_bus_id)
    : library_(library) {
  if (!library_ || is_driver_stand_in(library_)) {
    throw LibraryFailure(fmt::format("there is no CUDA driver ({})", library));
  }
  const bool whole = library_.bind("cuInit", driver_.init) &&
                     library_.bind("cuDeviceGetByPCIBusId", driver_.device_by_bus) &&
                     library_.bind("cuDeviceTotalMem_v2", driver_.total) &&
                     library_.bind("cuDevicePrimaryCtxRetain", driver_.retain) &&
                     library_.bind("cuDevicePrimaryCtxRelease_v2", driver_.release) &&
                     library_.bind("cuCtxSetCurrent", driver_.set_current) &&
                     library_.bind("cuCtxSynchronize", driver_.synchronize) &&
                     library_.bind("cuMemAlloc_v2", driver_.allocate) &&
                     library_.bind("cuMemFree_v2", driver_.free) &&
                     library_.bind("cuMemAllocHost_v2", driver_.allocate_host) &&
                     library_.bind("cuMemFreeHost", driver_.free_host) &&
                     library_.bind("cuMemsetD8_v2", driver_.memset) &&
                     library_.bind("cuMemcpyHtoD_v2", driver_.to_device) &&
                     library_.bind("cuMemcpyDtoH_v2", driver_.to_host) &&
                     library_.bind("cuMemcpyDtoD_v2", driver_.on_device);
  if (!whole) throw LibraryFailure(fmt::format("{} is no CUDA driver, or too old", library));
  library_.bind("cuModuleGetLoadingMode", driver_.loading_mode);
  must_succeed(driver_.init(0), "cuInit");
  must_succeed(driver_.device_by_bus(&device_, pci_bus_id.c_str()), "cuDeviceGetByPCIBusId");
  void* context = nullptr;
  must_succeed(driver_.retain(&context, device_), "cuDevicePrimaryCtxRetain");
  if (const int error = driver_.set_current(context); error != 0) {
    driver_.release(device_);  // no destructor runs for what was not constructed
    must_succeed(error, "cuCtxSetCurrent");
  }
}

CudaContext::~CudaContext() { driver_.release(device_); }

std::size_t CudaContext::total_bytes() const {
  std::size_t bytes = 0;
  must_succeed(driver_.total(&bytes, device_), "cuDeviceTotalMem");
  return bytes;
}

bool CudaContext::loads_lazily() const {
  int mode = 0;
  return driver_.loading_mode != nullptr && driver_.loading_mode(&mode) == 0 &&
         mode == lazy_loading;
}

DevicePointer CudaContext::allocate(std::size_t bytes) const {
  DevicePointer pointer = 0;
  must_succeed(driver_.allocate(&pointer, bytes), "cuMemAlloc");
  return pointer;
}

void CudaContext::free(DevicePointer pointer) const { driver_.free(pointer); }

void* CudaContext::allocate_pinned(std::size_t bytes) const {
  void* pointer = nullptr;
  must_succeed(driver_.allocate_host(&pointer, bytes), "cuMemAllocHost");
  return pointer;
}

void CudaContext::free_pinned(void* pointer) const { driver_.free_host(pointer); }

void CudaContext::fill_with_zeros(DevicePointer pointer, std::size_t bytes) const {
  must_succeed(driver_.memset(pointer, 0, bytes), "cuMemsetD8");
}

void CudaContext::copy_to_device(DevicePointer to, const void* from, std::size_t bytes) const {
  must_succeed(driver_.to_device(to, from, bytes), "cuMemcpyHtoD");
}

void CudaContext::copy_to_host(void* to, DevicePointer from, std::size_t bytes) const {
  must_succeed(driver_.to_host(to, from, bytes), "cuMemcpyDtoH");
}

void CudaContext::copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes) const {
  must_succeed(driver_.on_device(to, from, bytes), "cuMemcpyDtoD");
}

void CudaContext::wait() const { must_succeed(driver_.synchronize(), "cuCtxSynchronize"); }

}  // namespace stowage
