// A stand-in for libcuda.so.1 that lets PyTorch's CUDA build run FakeTensor programs, the backward
// pass included, on a machine without a driver or a GPU.
//
// PyTorch's autograd engine asks the CUDA hooks, for each device index of the (no-op) device guard
// that FakeTensorMode installs, whether a primary context exists. That check first compares the
// index with the number of visible devices, which is 0 here, and throws. This library answers for
// the driver and for c10: many devices while `stowage_show_devices(n)` says so, none of them with a
// context. Attention asks for the device's properties before it chooses a kernel; they are those of
// an A100 as far as that choice needs them (STOWAGE_FAKE_MAJOR, STOWAGE_FAKE_MINOR: of another
// compute capability). Nothing else of CUDA is provided, so any attempt to run a kernel still
// fails.
//
// Built and preloaded by fake_cuda.py; its soname is libcuda.so.1.

#include <driver_types.h>

#ifndef STOWAGE_FAKE_MAJOR
#define STOWAGE_FAKE_MAJOR 8
#endif
#ifndef STOWAGE_FAKE_MINOR
#define STOWAGE_FAKE_MINOR 0
#else
// For a single query PyTorch looks at the current device as well (attention_choices.py).
extern "C" int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}
extern "C" int cudaGetDeviceCount(int* count) {
  *count = 1;
  return 0;
}
#endif

namespace {
signed char visible_devices = 0;

cudaDeviceProp a100() {
  cudaDeviceProp properties{};
  properties.major = STOWAGE_FAKE_MAJOR;
  properties.minor = STOWAGE_FAKE_MINOR;
  properties.multiProcessorCount = 108;
  properties.warpSize = 32;
  return properties;
}

cudaDeviceProp device_properties = a100();
}  // namespace

extern "C" int stowage_show_devices(int count) {
  const int before = visible_devices;
  visible_devices = static_cast<signed char>(count);
  return before;
}

extern "C" int cuDevicePrimaryCtxGetState(int /*device*/, unsigned* flags, int* active) {
  *flags = 0;
  *active = 0;
  return 0;
}

namespace c10::cuda {
signed char device_count() noexcept { return visible_devices; }
bool hasPrimaryContext(signed char /*device*/) { return false; }
}  // namespace c10::cuda

namespace at::cuda {
cudaDeviceProp* getCurrentDeviceProperties() { return &device_properties; }
cudaDeviceProp* getDeviceProperties(signed char /*device*/) { return &device_properties; }
}  // namespace at::cuda
