#include "gpu_probe/device/cuda_context.hpp"

#include "gpu_probe/driver/library_failure.hpp"

namespace stowage {

namespace {

constexpr int lazy_loading = 2;  // CU_MODULE_LAZY_LOADING

}  // namespace

CudaContext::CudaContext(const std::string& library, const std::string& pci_bus_id)
    : driver_(library) {
  if (!driver_.is_there()) {
    throw LibraryFailure(fmt::format("there is no CUDA driver ({})", library));
  }
  if (!driver_.lacking_query().empty() || !driver_.lacking_call().empty()) {
    throw LibraryFailure(fmt::format("{} is no CUDA driver, or too old", library));
  }
  must_succeed(driver_->init(0), "cuInit");
  must_succeed(driver_->device_at_bus(&device_, pci_bus_id.c_str()), "cuDeviceGetByPCIBusId");
  void* context = nullptr;
  must_succeed(driver_->retain_context(&context, device_), "cuDevicePrimaryCtxRetain");
  if (const int error = driver_->set_context(context); error != 0) {
    driver_->release_context(device_);  // the destructor does not run after a throw
    must_succeed(error, "cuCtxSetCurrent");
  }
}

CudaContext::~CudaContext() { driver_->release_context(device_); }

std::size_t CudaContext::total_bytes() const {
  std::size_t bytes = 0;
  must_succeed(driver_->device_memory(&bytes, device_), "cuDeviceTotalMem");
  return bytes;
}

bool CudaContext::loads_lazily() const {
  int mode = 0;
  return driver_->loading_mode != nullptr && driver_->loading_mode(&mode) == 0 &&
         mode == lazy_loading;
}

ContextMemory::ContextMemory(const CudaContext& context, std::size_t bytes) : context_(context) {
  must_succeed(context_.driver_->allocate(&begin_, bytes), "cuMemAlloc");
}

ContextMemory::~ContextMemory() { context_.driver_->free(begin_); }

PinnedMemory::PinnedMemory(const CudaContext& context, std::size_t bytes) : context_(context) {
  must_succeed(context_.driver_->allocate_pinned(&begin_, bytes), "cuMemAllocHost");
}

PinnedMemory::~PinnedMemory() { context_.driver_->free_pinned(begin_); }

void CudaContext::fill_with_zeros(DevicePointer pointer, std::size_t bytes) const {
  must_succeed(driver_->fill(pointer, 0, bytes), "cuMemsetD8");
}

void CudaContext::copy_to_device(DevicePointer to, const void* from, std::size_t bytes) const {
  must_succeed(driver_->copy_to_device(to, from, bytes), "cuMemcpyHtoD");
}

void CudaContext::copy_to_host(void* to, DevicePointer from, std::size_t bytes) const {
  must_succeed(driver_->copy_to_host(to, from, bytes), "cuMemcpyDtoH");
}

void CudaContext::copy_on_device(DevicePointer to, DevicePointer from, std::size_t bytes) const {
  must_succeed(driver_->copy_on_device(to, from, bytes), "cuMemcpyDtoD");
}

void CudaContext::wait() const { must_succeed(driver_->wait(), "cuCtxSynchronize"); }

}  // namespace stowage
