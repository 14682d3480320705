// CudaDriver: the CUDA driver's functions that we call. One table holds them; their types, their
// loading and the tests' drivers are made from it.
//
// Declared as in the driver API's documentation (CUDA 12 and 13), without CUDA's headers.
// driver_stand_in/ has another list: the functions that cuDNN looks up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

using DevicePointer = std::uint64_t;  ///< CUdeviceptr
using CudaDeviceNumber = int;         ///< CUdevice

/// FUNCTION(our name, the library's symbol, arguments). All return CUDA's error number, 0 for
/// success. These ask about devices; every driver since CUDA 6.0 has them.
#define STOWAGE_CUDA_QUERIES(FUNCTION)                                             \
  FUNCTION(init, cuInit, (unsigned flags))                                         \
  FUNCTION(error_text, cuGetErrorString, (int error, const char** text))           \
  FUNCTION(version, cuDriverGetVersion, (int* version))                            \
  FUNCTION(device_count, cuDeviceGetCount, (int* count))                           \
  FUNCTION(device, cuDeviceGet, (stowage::CudaDeviceNumber * device, int ordinal)) \
  FUNCTION(device_at_bus, cuDeviceGetByPCIBusId,                                   \
           (stowage::CudaDeviceNumber * device, const char* bus_id))               \
  FUNCTION(bus_of_device, cuDeviceGetPCIBusId,                                     \
           (char* bus_id, int length, stowage::CudaDeviceNumber device))           \
  FUNCTION(device_name, cuDeviceGetName,                                           \
           (char* name, int length, stowage::CudaDeviceNumber device))             \
  FUNCTION(device_memory, cuDeviceTotalMem_v2,                                     \
           (std::size_t * bytes, stowage::CudaDeviceNumber device))                \
  FUNCTION(device_attribute, cuDeviceGetAttribute,                                 \
           (int* value, int attribute, stowage::CudaDeviceNumber device))

/// Contexts, memory, copies: since CUDA 11.0.
#define STOWAGE_CUDA_CALLS(FUNCTION)                                                          \
  FUNCTION(retain_context, cuDevicePrimaryCtxRetain,                                          \
           (void** context, stowage::CudaDeviceNumber device))                                \
  FUNCTION(release_context, cuDevicePrimaryCtxRelease_v2, (stowage::CudaDeviceNumber device)) \
  FUNCTION(set_context, cuCtxSetCurrent, (void* context))                                     \
  FUNCTION(wait, cuCtxSynchronize, ())                                                        \
  FUNCTION(memory, cuMemGetInfo_v2, (std::size_t * free, std::size_t * total))                \
  FUNCTION(allocate, cuMemAlloc_v2, (stowage::DevicePointer * pointer, std::size_t bytes))    \
  FUNCTION(free, cuMemFree_v2, (stowage::DevicePointer pointer))                              \
  FUNCTION(allocate_pinned, cuMemAllocHost_v2, (void** pointer, std::size_t bytes))           \
  FUNCTION(free_pinned, cuMemFreeHost, (void* pointer))                                       \
  FUNCTION(fill, cuMemsetD8_v2,                                                               \
           (stowage::DevicePointer pointer, unsigned char value, std::size_t bytes))          \
  FUNCTION(copy_to_device, cuMemcpyHtoD_v2,                                                   \
           (stowage::DevicePointer to, const void* from, std::size_t bytes))                  \
  FUNCTION(copy_to_host, cuMemcpyDtoH_v2,                                                     \
           (void* to, stowage::DevicePointer from, std::size_t bytes))                        \
  FUNCTION(copy_on_device, cuMemcpyDtoD_v2,                                                   \
           (stowage::DevicePointer to, stowage::DevicePointer from, std::size_t bytes))

/// Lanes: streams, events, copies beside kernels, modules. All but the last since CUDA 11.0.
#define STOWAGE_CUDA_LANE_CALLS(FUNCTION)                                                          \
  FUNCTION(pin, cuMemHostRegister_v2, (void* memory, std::size_t bytes, unsigned flags))           \
  FUNCTION(unpin, cuMemHostUnregister, (void* memory))                                             \
  FUNCTION(create_stream, cuStreamCreate, (void** stream, unsigned flags))                         \
  FUNCTION(destroy_stream, cuStreamDestroy_v2, (void* stream))                                     \
  FUNCTION(create_event, cuEventCreate, (void** event, unsigned flags))                            \
  FUNCTION(destroy_event, cuEventDestroy_v2, (void* event))                                        \
  FUNCTION(record_event, cuEventRecord, (void* event, void* stream))                               \
  FUNCTION(wait_for_event, cuEventSynchronize, (void* event))                                      \
  FUNCTION(milliseconds_between, cuEventElapsedTime, (float* milliseconds, void* from, void* to))  \
  FUNCTION(stream_waits_for_event, cuStreamWaitEvent, (void* stream, void* event, unsigned flags)) \
  FUNCTION(queue_fill, cuMemsetD8Async,                                                            \
           (stowage::DevicePointer pointer, unsigned char value, std::size_t bytes, void* stream)) \
  FUNCTION(queue_copy_to_device, cuMemcpyHtoDAsync_v2,                                             \
           (stowage::DevicePointer to, const void* from, std::size_t bytes, void* stream))         \
  FUNCTION(queue_copy_to_host, cuMemcpyDtoHAsync_v2,                                               \
           (void* to, stowage::DevicePointer from, std::size_t bytes, void* stream))               \
  FUNCTION(load_module, cuModuleLoadData, (void** module, const void* image))                      \
  FUNCTION(unload_module, cuModuleUnload, (void* module))                                          \
  FUNCTION(function_of, cuModuleGetFunction, (void** function, void* module, const char* name))    \
  FUNCTION(launch, cuLaunchKernel,                                                                 \
           (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
            unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,               \
            void** arguments, void** extra))                                                       \
  FUNCTION(stream_waits_for_value, cuStreamWaitValue64_v2, /* CUDA 11.7 */                         \
           (void* stream, stowage::DevicePointer address, std::uint64_t value, unsigned flags))

/// Functions that older drivers lack; there they are null.
#define STOWAGE_LATER_CUDA_FUNCTIONS(FUNCTION) \
  FUNCTION(loading_mode, cuModuleGetLoadingMode, (int* mode)) /* CUDA 11.7 */

struct CudaFunctions {
#define STOWAGE_DECLARE(name, symbol, arguments) int(*name) arguments = nullptr;
  STOWAGE_CUDA_QUERIES(STOWAGE_DECLARE)
  STOWAGE_CUDA_CALLS(STOWAGE_DECLARE)
  STOWAGE_CUDA_LANE_CALLS(STOWAGE_DECLARE)
  STOWAGE_LATER_CUDA_FUNCTIONS(STOWAGE_DECLARE)
#undef STOWAGE_DECLARE
};

/// A driver, loaded by its name. Loading it creates no context and calls no function.
class CudaDriver {
 public:
  explicit CudaDriver(const std::string& library = "libcuda.so.1");

  /// Whether a driver was loaded. The stand-in does not count as one.
  [[nodiscard]] bool is_there() const { return absence_.empty(); }
  /// Why there is no driver, in the loader's words; "" where there is one.
  [[nodiscard]] const std::string& absence() const { return absence_; }
  /// The first function of a table that the driver lacks; "" where it has all.
  [[nodiscard]] const std::string& lacking_query() const { return lacking_query_; }
  [[nodiscard]] const std::string& lacking_call() const { return lacking_call_; }
  [[nodiscard]] const std::string& lacking_lane_call() const { return lacking_lane_call_; }

  [[nodiscard]] const CudaFunctions* operator->() const { return &functions_; }

 private:
  std::string absence_, lacking_query_, lacking_call_, lacking_lane_call_;
  CudaFunctions functions_;
};

}  // namespace stowage
