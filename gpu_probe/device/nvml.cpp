#include "gpu_probe/device/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

// The interface, from NVML's reference manual. Every call returns 0 for success.
using NvmlDevice = struct NvmlDeviceState*;

struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct Nvml {
  int (*initialize)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, NvmlDevice*) = nullptr;
  int (*name)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  int (*pci)(NvmlDevice, NvmlPci*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*compute_capability)(NvmlDevice, int*, int*) = nullptr;
  int (*link_generation)(NvmlDevice, unsigned*) = nullptr;
  int (*link_width)(NvmlDevice, unsigned*) = nullptr;
  int (*most_link_generation)(NvmlDevice, unsigned*) = nullptr;
  int (*most_link_width)(NvmlDevice, unsigned*) = nullptr;
};

bool bind_all(const SharedLibrary& library, Nvml& nvml) {
  return library.bind("nvmlInit_v2", nvml.initialize) &&
         library.bind("nvmlShutdown", nvml.shutdown) &&
         library.bind("nvmlErrorString", nvml.error_string) &&
         library.bind("nvmlSystemGetDriverVersion", nvml.driver_version) &&
         library.bind("nvmlSystemGetCudaDriverVersion", nvml.cuda_version) &&
         library.bind("nvmlDeviceGetCount_v2", nvml.count) &&
         library.bind("nvmlDeviceGetHandleByIndex_v2", nvml.device) &&
         library.bind("nvmlDeviceGetName", nvml.name) &&
         library.bind("nvmlDeviceGetUUID", nvml.uuid) &&
         library.bind("nvmlDeviceGetPciInfo_v3", nvml.pci) &&
         library.bind("nvmlDeviceGetMemoryInfo", nvml.memory) &&
         library.bind("nvmlDeviceGetCudaComputeCapability", nvml.compute_capability) &&
         library.bind("nvmlDeviceGetCurrPcieLinkGeneration", nvml.link_generation) &&
         library.bind("nvmlDeviceGetCurrPcieLinkWidth", nvml.link_width) &&
         library.bind("nvmlDeviceGetMaxPcieLinkGeneration", nvml.most_link_generation) &&
         library.bind("nvmlDeviceGetMaxPcieLinkWidth", nvml.most_link_width);
}

std::string text_of(int (*read)(NvmlDevice, char*, unsigned), NvmlDevice device) {
  std::array<char, 96> text = {};
  return read(device, text.data(), text.size()) == 0 ? text.data() : "";
}

std::optional<PcieLink> link_of(int (*generation)(NvmlDevice, unsigned*),
                                int (*width)(NvmlDevice, unsigned*), NvmlDevice device) {
  unsigned g = 0, w = 0;
  if (generation(device, &g) != 0 || width(device, &w) != 0 || w == 0) return std::nullopt;
  return PcieLink{static_cast<int>(g), static_cast<int>(w)};
}

ProbedGpu read_gpu(const Nvml& nvml, NvmlDevice device) {
  ProbedGpu gpu;
  gpu.name = text_of(nvml.name, device);
  gpu.uuid = text_of(nvml.uuid, device);
  if (NvmlPci pci = {}; nvml.pci(device, &pci) == 0) gpu.pci_bus_id = pci.bus_id;
  if (NvmlMemory memory = {}; nvml.memory(device, &memory) == 0) {
    gpu.total = Bytes(static_cast<std::int64_t>(memory.total));
    gpu.free = Bytes(static_cast<std::int64_t>(memory.free));
  }
  if (int major = 0, minor = 0; nvml.compute_capability(device, &major, &minor) == 0) {
    gpu.compute_capability = major + minor / 10.0;
  }
  gpu.link = link_of(nvml.link_generation, nvml.link_width, device);
  gpu.link_at_most = link_of(nvml.most_link_generation, nvml.most_link_width, device);
  return gpu;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// NVML writes the PCI domain with eight digits, CUDA with four.
bool is_same_bus(const std::string& a, const std::string& b) {
  const std::string& longer = a.size() < b.size() ? b : a;
  const std::string& shorter = a.size() < b.size() ? a : b;
  return !shorter.empty() && lower_case(longer).ends_with(lower_case(shorter));
}

}  // namespace

NvmlReport read_nvml(const std::string& library_name) {
  NvmlReport report;
  const SharedLibrary library(library_name);
  Nvml nvml;
  if (!library) {
    report.error = fmt::format("no NVIDIA driver is installed ({} was not found)", library_name);
    return report;
  }
  if (!bind_all(library, nvml)) {
    report.error =
        fmt::format("the NVIDIA driver cannot be asked: {} is not NVML, or too old", library_name);
    return report;
  }
  if (const int status = nvml.initialize(); status != 0) {
    report.error = fmt::format("the NVIDIA driver cannot be used: {}", nvml.error_string(status));
    return report;
  }
  std::array<char, 96> driver = {};
  if (nvml.driver_version(driver.data(), driver.size()) == 0) report.driver = driver.data();
  if (int cuda = 0; nvml.cuda_version(&cuda) == 0) {
    report.cuda = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  }
  unsigned count = 0;
  nvml.count(&count);
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    if (nvml.device(i, &device) == 0) report.gpus.push_back(read_gpu(nvml, device));
  }
  if (report.gpus.empty()) report.error = "the NVIDIA driver sees no GPU";
  nvml.shutdown();
  return report;
}

std::optional<Bytes> used_by_nvml(const std::string& library, const std::string& pci_bus_id) {
  const NvmlReport report = read_nvml(library);
  const auto gpu = std::ranges::find_if(
      report.gpus, [&](const ProbedGpu& g) { return is_same_bus(g.pci_bus_id, pci_bus_id); });
  if (gpu == report.gpus.end()) return std::nullopt;
  return gpu->total - gpu->free;
}

void read_cuda_totals(const std::string& library_name, std::vector<ProbedGpu>& gpus) {
  const CudaDriver driver(library_name);
  if (!driver.is_there() || !driver.lacking_query().empty()) return;
  int count = 0;
  if (driver->init(0) != 0 || driver->device_count(&count) != 0) return;
  for (int device = 0; device < count; ++device) {
    std::array<char, 32> id = {};
    std::size_t bytes = 0;
    if (driver->bus_of_device(id.data(), static_cast<int>(id.size()), device) != 0 ||
        driver->device_memory(&bytes, device) != 0) {
      continue;
    }
    const auto gpu = std::ranges::find_if(
        gpus, [&](const ProbedGpu& g) { return is_same_bus(g.pci_bus_id, id.data()); });
    if (gpu != gpus.end()) gpu->cuda_total = Bytes(static_cast<std::int64_t>(bytes));
  }
}

}  // namespace stowage
