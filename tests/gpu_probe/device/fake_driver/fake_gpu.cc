// A pretended GPU that only counts: NVML, libcuda, cuBLAS and cuDNN in one library, with the
// functions that a calibration calls. The context takes 300 MiB, cuBLAS 40, cuDNN's first
// convolution 90. STOWAGE_FAKE_GPU steers it. "full": hardly any memory is free; "eager": no lazy
// loading; "no-products": cuBLAS fails; "shrinks": memory is freed while cuDNN runs; "no-current":
// a context cannot be made current. fakeContexts() returns how many contexts exist.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/gpu_probe/device/fake_driver/fake_nvml.hpp"

namespace {

constexpr unsigned long long mebibyte = 1 << 20;
unsigned long long used = 500 * mebibyte;
int convolutions = 0;
int contexts = 0;
int handle;

bool is(const char* setting) {
  const char* chosen = std::getenv("STOWAGE_FAKE_GPU");
  return chosen != nullptr && std::strcmp(chosen, setting) == 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Unknown Error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) { return put(text, length, "580.1"); }
int nvmlSystemGetCudaDriverVersion(int* version) { return *version = 13000, 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = 1, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) { return *device = &handle, 0; }
int nvmlDeviceGetName(void*, char* text, unsigned length) {
  return put(text, length, "NVIDIA GeForce RTX 3090");
}
int nvmlDeviceGetUUID(void*, char* text, unsigned length) { return put(text, length, "GPU-1"); }
int nvmlDeviceGetPciInfo_v3(void*, FakePci* pci) {
  return put(pci->bus_id, sizeof pci->bus_id, "00000000:65:00.0");
}
int nvmlDeviceGetMemoryInfo(void*, FakeMemory* memory) {
  memory->total = 24576 * mebibyte;
  memory->used = is("full") ? 24000 * mebibyte : used;
  memory->free = memory->total - memory->used;
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  return *major = 8, *minor = 6, 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* value) { return *value = 4, 0; }
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* value) { return *value = 16, 0; }
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* value) { return *value = 4, 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* value) { return *value = 16, 0; }

int cuInit(unsigned) { return 0; }
int cuDeviceGetByPCIBusId(int* device, const char* bus) {
  return *device = 0, std::strcmp(bus, "0000:65:00.0") == 0 ? 0 : 101;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = 24248 * mebibyte, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) {
  used += 300 * mebibyte;
  ++contexts;
  return *context = &handle, 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  --contexts;
  return 0;
}
int fakeContexts() { return contexts; }
int cuCtxSetCurrent(void*) { return is("no-current") ? 201 : 0; }
int cuCtxSynchronize() { return 0; }
int cuModuleGetLoadingMode(int* mode) { return *mode = is("eager") ? 1 : 2, 0; }
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  *pointer = reinterpret_cast<uint64_t>(std::malloc(bytes));
  used += bytes;
  return *pointer == 0 ? 2 : 0;
}
int cuMemFree_v2(uint64_t pointer) { return std::free(reinterpret_cast<void*>(pointer)), 0; }
int cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return *pointer = std::malloc(bytes), *pointer == nullptr ? 2 : 0;
}
int cuMemFreeHost(void* pointer) { return std::free(pointer), 0; }
int cuMemsetD8_v2(uint64_t, unsigned char, size_t) { return 0; }
int cuMemcpyHtoD_v2(uint64_t, const void*, size_t) { return 0; }
int cuMemcpyDtoH_v2(void*, uint64_t, size_t) { return 0; }
int cuMemcpyDtoD_v2(uint64_t, uint64_t, size_t) { return 0; }

int cublasCreate_v2(void** blas) {
  used += 40 * mebibyte;
  return *blas = &handle, 0;
}
int cublasDestroy_v2(void*) { return 0; }
int cublasSetWorkspace_v2(void*, void*, size_t) { return 0; }
int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*,
                 int, int, const void*, void*, int, int, int, int) {
  return is("no-products") ? 13 : 0;
}

size_t cudnnGetVersion() { return 91900; }
int cudnnCreate(void** dnn) { return convolutions = 0, *dnn = &handle, 0; }
int cudnnDestroy(void*) { return 0; }
int cudnnCreateTensorDescriptor(void** it) { return *it = &handle, 0; }
int cudnnDestroyTensorDescriptor(void*) { return 0; }
int cudnnSetTensor4dDescriptor(void*, int, int, int, int, int, int) { return 0; }
int cudnnCreateFilterDescriptor(void** it) { return *it = &handle, 0; }
int cudnnDestroyFilterDescriptor(void*) { return 0; }
int cudnnSetFilter4dDescriptor(void*, int, int, int, int, int, int) { return 0; }
int cudnnCreateConvolutionDescriptor(void** it) { return *it = &handle, 0; }
int cudnnDestroyConvolutionDescriptor(void*) { return 0; }
int cudnnSetConvolution2dDescriptor(void*, int, int, int, int, int, int, int, int) { return 0; }
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, size_t* size) {
  return *size = 1 << 20, 0;
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                 size_t* size) {
  return *size = 0, 0;
}
int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                   size_t* size) {
  return *size = 2 << 20, 0;
}
int run_convolution() {
  if (convolutions++ == 0) used += 90 * mebibyte;
  if (is("shrinks")) used -= 200 * mebibyte;
  return 0;
}
int cudnnConvolutionForward(void*, const void*, void*, const void*, void*, const void*, void*, int,
                            void*, size_t, const void*, void*, void*) {
  return run_convolution();
}
int cudnnConvolutionBackwardData(void*, const void*, void*, const void*, void*, const void*, void*,
                                 int, void*, size_t, const void*, void*, void*) {
  return run_convolution();
}
int cudnnConvolutionBackwardFilter(void*, const void*, void*, const void*, void*, const void*,
                                   void*, int, void*, size_t, const void*, void*, void*) {
  return run_convolution();
}

}  // extern "C"
