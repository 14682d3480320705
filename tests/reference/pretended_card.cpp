// A CUDA runtime and driver of our own, as far as PyTorch's caching allocator calls them: a card
// that counts its memory in pages of 2 MiB and holds nothing. Linked into allocator_run.cpp, where
// its functions come before those of libcudart. Addresses rise and are never used twice; an event
// is done once its stream has been told to be (`card_complete`), or waited for.
#include "pretended_card.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr std::size_t page = 2 << 20;

std::size_t total = 0, free_bytes = 0;
std::size_t next_address = std::size_t{1} << 40;
std::map<std::size_t, std::size_t> pieces;  // what is held, by address or by handle
std::map<cudaStream_t, long> recorded, done;

struct Event {
  cudaStream_t stream = nullptr;
  long number = 0;
};

std::size_t paged(std::size_t bytes) { return (bytes + page - 1) / page * page; }

bool hold(std::size_t key, std::size_t bytes) {
  if (paged(bytes) > free_bytes) return false;
  free_bytes -= paged(bytes);
  pieces[key] = paged(bytes);
  return true;
}

void release(std::size_t key) {
  free_bytes += pieces.at(key);
  pieces.erase(key);
}

std::size_t addresses(std::size_t bytes) {
  const std::size_t begin = next_address;
  next_address += paged(bytes);
  return begin;
}

CUresult mem_create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                    const CUmemAllocationProp*, unsigned long long) {
  static std::size_t next = 1;
  if (!hold(next, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = next++;
  return CUDA_SUCCESS;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  release(handle);
  return CUDA_SUCCESS;
}

CUresult address_reserve(CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                         unsigned long long) {
  *address = addresses(bytes);
  return CUDA_SUCCESS;
}

CUresult granularity(std::size_t* bytes, const CUmemAllocationProp*,
                     CUmemAllocationGranularity_flags) {
  *bytes = page;
  return CUDA_SUCCESS;
}

CUresult device_attribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult error_string(CUresult, const char** text) {
  *text = "an error of the pretended driver";
  return CUDA_SUCCESS;
}

CUresult nothing() { return CUDA_SUCCESS; }
CUresult unsupported() { return CUDA_ERROR_NOT_SUPPORTED; }

void* driver_function(const std::string& name) {
  if (name == "cuMemCreate") return reinterpret_cast<void*>(mem_create);
  if (name == "cuMemRelease") return reinterpret_cast<void*>(mem_release);
  if (name == "cuMemAddressReserve") return reinterpret_cast<void*>(address_reserve);
  if (name == "cuMemGetAllocationGranularity") return reinterpret_cast<void*>(granularity);
  if (name == "cuDeviceGetAttribute") return reinterpret_cast<void*>(device_attribute);
  if (name == "cuGetErrorString") return reinterpret_cast<void*>(error_string);
  for (const char* silent : {"cuMemAddressFree", "cuMemMap", "cuMemUnmap", "cuMemSetAccess"}) {
    if (name == silent) return reinterpret_cast<void*>(nothing);
  }
  return reinterpret_cast<void*>(unsupported);
}

}  // namespace

void card_begin(std::size_t bytes, std::size_t in_use) {
  total = bytes;
  free_bytes = bytes - in_use;
}

void card_complete(cudaStream_t stream) { done[stream] = recorded[stream]; }

std::size_t card_free() { return free_bytes; }

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  properties->major = 8;
  properties->totalGlobalMem = total;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* all) {
  *available = free_bytes;
  *all = total;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (!hold(next_address, bytes)) return cudaErrorMemoryAllocation;
  *pointer = reinterpret_cast<void*>(addresses(bytes));
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (pointer != nullptr) release(reinterpret_cast<std::size_t>(pointer));
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, std::size_t*) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *reinterpret_cast<Event*>(event) = {stream, ++recorded[stream]};
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Event& asked = *reinterpret_cast<Event*>(event);
  return asked.number <= done[asked.stream] ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Event& awaited = *reinterpret_cast<Event*>(event);
  done[awaited.stream] = std::max(done[awaited.stream], awaited.number);
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = driver_function(name);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

}  // extern "C"
