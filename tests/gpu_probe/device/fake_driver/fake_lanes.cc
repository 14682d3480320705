// A pretended CUDA driver whose device is the host's memory. Queued work is done at once, in the
// order of the calls, which is right for every stream. Any call can be made to fail.
#include "tests/gpu_probe/device/fake_driver/fake_lanes.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace {

constexpr int invalid_value = 1, out_of_memory = 2, lost_device = 719;

FakeLanes state;
std::set<std::string> names;             // of functions that were looked up
std::set<void*> live;                    // allocations, streams, events, modules, the context
std::map<void*, std::size_t> on_device;  // bytes of the device's allocations

std::recursive_mutex mutex;  // guards both: the CPU's lane calls too

/// The error of the call that is being made; 0: none.
int failure() {
  const std::lock_guard lock(mutex);
  ++state.calls;
  if (state.fail_at == 0) return 0;
  const bool fails = state.sticks ? state.calls >= state.fail_at : state.calls == state.fail_at;
  return fails ? lost_device : 0;
}

int made(void** result, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  if (const int error = failure()) return error;
  *result = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*result == nullptr) return out_of_memory;
  live.insert(*result);
  return 0;
}

int gone(void* what) {
  const std::lock_guard lock(mutex);
  if (live.erase(what) == 0) {
    ++state.wrong_calls;
    return invalid_value;
  }
  std::free(what);
  return failure();
}

/// Counts a wrong call unless `what` exists.
int use(void* what) {
  const std::lock_guard lock(mutex);
  if (const int error = failure()) return error;
  if (what != nullptr && live.count(what) == 0) {
    ++state.wrong_calls;
    return invalid_value;
  }
  return 0;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

extern "C" {

FakeLanes* fakeLanes() {
  state.live = live.size();
  return &state;
}

int cuInit(unsigned) { return failure(); }
int cuGetErrorString(int error, const char** text) {
  *text = error == lost_device ? "unspecified launch failure" : "invalid argument";
  return 0;
}
int cuDriverGetVersion(int* version) { return *version = 13000, failure(); }
int cuDeviceGetCount(int* count) { return *count = 1, failure(); }
int cuDeviceGet(int* device, int ordinal) { return *device = 0, ordinal == 0 ? failure() : 101; }
int cuDeviceGetName(char* name, int length, int) {
  return std::strncpy(name, "Fake", static_cast<std::size_t>(length)), failure();
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? 8 : 6, failure();
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  if (const int error = made(context, 1)) return error;
  state.context = *context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return gone(state.context); }
int cuCtxSetCurrent(void* context) { return use(context); }
int cuCtxSynchronize() { return failure(); }

int cuDeviceGetPCIBusId(char* id, int length, int) {
  return std::strncpy(id, "0000:65:00.0", static_cast<std::size_t>(length)), failure();
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = size_t{1} << 30;
  *free = *total - state.on_device;
  return failure();
}
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  if (const int error = made(reinterpret_cast<void**>(pointer), bytes)) return error;
  const std::lock_guard lock(mutex);
  state.on_device += on_device[reinterpret_cast<void*>(*pointer)] = bytes;
  return 0;
}
int cuMemFree_v2(uint64_t pointer) {
  const std::lock_guard lock(mutex);
  state.on_device -= on_device[reinterpret_cast<void*>(pointer)];
  on_device.erase(reinterpret_cast<void*>(pointer));
  return gone(reinterpret_cast<void*>(pointer));
}
int cuMemAllocHost_v2(void** pointer, size_t bytes) { return made(pointer, bytes); }
int cuMemFreeHost(void* pointer) { return gone(pointer); }

// Pins memory of the caller's own.
int cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  if (const int error = failure()) return error;
  state.pinned = bytes;
  if (!live.insert(memory).second) ++state.wrong_calls;
  return 0;
}
int cuMemHostUnregister(void* memory) {
  if (live.erase(memory) == 0) ++state.wrong_calls;
  return failure();
}

int cuStreamCreate(void** stream, unsigned) { return made(stream, 1); }
int cuStreamDestroy_v2(void* stream) { return gone(stream); }
int cuEventCreate(void** event, unsigned) { return made(event, sizeof(double)); }
int cuEventDestroy_v2(void* event) { return gone(event); }
int cuEventRecord(void* event, void* stream) {
  if (const int error = use(event)) return error;
  const double time = now();
  std::memcpy(event, &time, sizeof time);
  return use(stream);
}
int cuEventSynchronize(void* event) { return use(event); }
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  double times[2];
  std::memcpy(&times[0], from, sizeof(double));
  std::memcpy(&times[1], to, sizeof(double));
  *milliseconds = static_cast<float>((times[1] - times[0]) * 1000);
  return use(from);
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  if (const int error = use(stream)) return error;
  return use(event);
}
int cuStreamWaitValue64_v2(void* stream, uint64_t address, uint64_t value, unsigned) {
  if (const int error = use(stream)) return error;
  const std::atomic_ref count(*reinterpret_cast<uint64_t*>(address));
  while (count.load(std::memory_order_acquire) < value) std::this_thread::yield();
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  if (const int error = use(stream)) return error;
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  if (const int error = use(stream)) return error;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  if (const int error = use(stream)) return error;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}
// A module is a text. It has a function of every name, which exists as long as the module.
int cuModuleLoadData(void** module, const void*) { return made(module, 1); }
int cuModuleUnload(void* module) { return gone(module); }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (const int error = use(module)) return error;
  const auto found = names.emplace(name).first;
  state.function = found->c_str();
  *function = const_cast<char*>(found->c_str());
  return 0;
}
int cuLaunchKernel(void* function, unsigned grid, unsigned, unsigned, unsigned block, unsigned,
                   unsigned, unsigned, void* stream, void** arguments, void**) {
  ++state.launches;
  state.grid = grid;
  state.block = block;
  if (const int error = use(stream)) return error;
  if (state.run == nullptr) return 0;
  return state.run(static_cast<const char*>(function), grid, block, arguments);
}

}  // extern "C"
