// A pretended NVML and libcuda with the functions that probe() calls, for a machine with one RTX
// 3090, a second GPU that refuses most questions, and an A100 that is divided and hidden from CUDA.
#include <cstddef>
#include <cstring>

#include "tests/gpu_probe/device/fake_driver/fake_nvml.hpp"

namespace {
int place[5];  // three GPUs and the third's two instances
bool is_first(void* device) { return device == &place[0]; }
int number_of(void* device) { return static_cast<int>(static_cast<int*>(device) - place); }
}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Unknown Error"; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return put(text, length, "580.95.05");
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 13000;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &place[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  const char* const names[] = {"NVIDIA GeForce RTX 3090", "NVIDIA T4", "NVIDIA A100-SXM4-40GB",
                               "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
                               "NVIDIA A100-SXM4-40GB MIG 3g.20gb"};
  return put(text, length, names[number_of(device)]);
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  const char* const ids[] = {"GPU-0001", nullptr, "GPU-0003", "MIG-0004", "MIG-0005"};
  const char* const id = ids[number_of(device)];
  return id != nullptr ? put(text, length, id) : 3;
}
int nvmlDeviceGetPciInfo_v3(void* device, FakePci* pci) {
  const char* const ids[] = {"00000000:65:00.0", "00000000:B3:00.0", "00000000:C1:00.0"};
  return put(pci->bus_id, sizeof pci->bus_id, ids[number_of(device)]);
}
int nvmlDeviceGetMemoryInfo(void* device, FakeMemory* memory) {
  const unsigned long long totals[] = {24576, 0, 40960, 4864, 20096};
  const unsigned long long free[] = {24000, 0, 40000, 4800, 19000};
  const int number = number_of(device);
  if (totals[number] == 0) return 3;
  memory->total = totals[number] << 20;
  memory->free = free[number] << 20;
  memory->used = (totals[number] - free[number]) << 20;
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  const int versions[] = {86, 75, 80};
  *major = versions[number_of(device)] / 10;
  *minor = versions[number_of(device)] % 10;
  return 0;
}
// A process whose memory is known, and the init process, whose memory is not; only as many as fit.
struct FakeProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, FakeProcess* processes) {
  if (!is_first(device)) return 3;
  constexpr unsigned others = 100;
  const bool fits = *count >= others + 2;
  *count = others + 2;
  if (!fits) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  for (unsigned i = 0; i < others; ++i) processes[i] = {1U << 30, 1ULL << 20, ~0U, ~0U};
  processes[others] = {1U << 31, 512ULL << 20, ~0U, ~0U};
  processes[others + 1] = {1, ~0ULL, ~0U, ~0U};
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
  *now = *pending = number_of(device) == 2;
  return is_first(device) ? 3 : 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** device) {
  if (index != 0 && index != 4) return 6;  // NVML_ERROR_NOT_FOUND
  *device = &place[index == 0 ? 3 : 4];
  return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* value) {
  *value = 1;
  return is_first(device) ? 0 : 3;
}
int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* value) {
  *value = 16;
  return is_first(device) ? 0 : 3;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* value) {
  *value = 4;
  return is_first(device) ? 0 : 3;
}
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* value) {
  *value = 16;
  return is_first(device) ? 0 : 3;
}

// libcuda, which has the devices in the opposite order.
int cuInit(unsigned) { return 0; }
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = device == 1 ? 25425608704ULL : 15655829504ULL;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int length, int device) {
  return put(text, static_cast<unsigned>(length), device == 1 ? "0000:65:00.0" : "0000:b3:00.0");
}

}  // extern "C"
