// The few functions of NVML and libcuda that probe() calls, for a machine with one RTX 3090, and a
// second GPU that refuses most questions.
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {
int place[2];
bool is_first(void* device) { return device == &place[0]; }
int put(char* text, unsigned length, const char* value) {
  std::snprintf(text, length, "%s", value);
  return 0;
}
}  // namespace

extern "C" {

struct FakeMemory {
  unsigned long long total, free, used;
};
struct FakePci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

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
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &place[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned length) {
  return put(text, length, is_first(device) ? "NVIDIA GeForce RTX 3090" : "NVIDIA T4");
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  return is_first(device) ? put(text, length, "GPU-0001") : 3;
}
int nvmlDeviceGetPciInfo_v3(void* device, FakePci* pci) {
  return put(pci->bus_id, sizeof pci->bus_id,
             is_first(device) ? "00000000:65:00.0" : "00000000:B3:00.0");
}
int nvmlDeviceGetMemoryInfo(void* device, FakeMemory* memory) {
  if (!is_first(device)) return 3;
  memory->total = 24576ULL << 20;
  memory->free = 24000ULL << 20;
  memory->used = 576ULL << 20;
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = is_first(device) ? 8 : 7;
  *minor = is_first(device) ? 6 : 5;
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

// libcuda, which orders the devices the other way round.
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
