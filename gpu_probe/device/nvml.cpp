#include "gpu_probe/device/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "estimator/base/name_match.hpp"
#include "gpu_probe/driver/cuda_functions.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {
namespace {

// NVML's interface, from its reference manual. Every call returns 0 for success.
using NvmlDevice = struct NvmlDeviceState*;

struct NvmlMemory {
  unsigned long long total, free, used;
};

struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

/// One process in the list of nvmlDeviceGet...RunningProcesses_v2 and _v3.
struct NvmlProcess {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long not_told = ~0ULL;
constexpr int too_many = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
using ReadProcesses = int (*)(NvmlDevice, unsigned*, NvmlProcess*);

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
  // Null where the driver is too old.
  ReadProcesses computing = nullptr, drawing = nullptr;
  int (*mig_mode)(NvmlDevice, unsigned* now, unsigned* pending) = nullptr;
  int (*most_instances)(NvmlDevice, unsigned*) = nullptr;
  int (*instance)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
};

void bind_newer(const SharedLibrary& library, Nvml& nvml) {
  for (const char* version : {"_v3", "_v2"}) {
    const std::string name = "nvmlDeviceGet{}RunningProcesses" + std::string(version);
    const auto bind = [&](const char* kind, ReadProcesses& function) {
      if (function == nullptr) {
        static_cast<void>(library.bind(fmt::format(fmt::runtime(name), kind).c_str(), function));
      }
    };
    bind("Compute", nvml.computing);
    bind("Graphics", nvml.drawing);
  }
  const bool knows_instances =
      library.bind("nvmlDeviceGetMigMode", nvml.mig_mode) &&
      library.bind("nvmlDeviceGetMaxMigDeviceCount", nvml.most_instances) &&
      library.bind("nvmlDeviceGetMigDeviceHandleByIndex", nvml.instance);
  if (!knows_instances) nvml.mig_mode = nullptr;
}

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

std::string program_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

/// The processes of one kind; none where the driver does not tell.
std::vector<NvmlProcess> processes_of(ReadProcesses read, NvmlDevice device) {
  if (read == nullptr) return {};
  std::vector<NvmlProcess> found(64);
  constexpr std::size_t most = 1 << 16;
  for (;;) {
    auto count = static_cast<unsigned>(found.size());
    const int status = read(device, &count, found.data());
    if (status == too_many && found.size() < most) {
      found.resize(2 * found.size());
      continue;
    }
    found.resize(status == 0 ? std::min<std::size_t>(count, found.size()) : 0);
    return found;
  }
}

std::vector<GpuProcess> read_processes(const Nvml& nvml, NvmlDevice device) {
  std::vector<GpuProcess> processes;
  for (const ReadProcesses read : {nvml.computing, nvml.drawing}) {
    for (const NvmlProcess& process : processes_of(read, device)) {
      GpuProcess known{.pid = process.pid, .name = program_of(process.pid), .memory = {}};
      if (process.memory != not_told) {
        known.memory = Bytes(static_cast<std::int64_t>(process.memory));
      }
      if (std::ranges::find(processes, known) == processes.end()) processes.push_back(known);
    }
  }
  std::ranges::sort(processes, {}, &GpuProcess::pid);
  return processes;
}

void read_memory(const Nvml& nvml, NvmlDevice device, Bytes& total, Bytes& free, Bytes* used) {
  NvmlMemory memory = {};
  if (nvml.memory(device, &memory) != 0) return;
  total = Bytes(static_cast<std::int64_t>(memory.total));
  free = Bytes(static_cast<std::int64_t>(memory.free));
  if (used != nullptr) *used = Bytes(static_cast<std::int64_t>(memory.used));
}

void read_instances(const Nvml& nvml, NvmlDevice device, ProbedGpu& gpu) {
  unsigned now = 0, pending = 0, most = 0;
  if (nvml.mig_mode == nullptr || nvml.mig_mode(device, &now, &pending) != 0 || now == 0) return;
  gpu.is_divided = true;
  if (nvml.most_instances(device, &most) != 0) return;
  for (unsigned i = 0; i < most; ++i) {
    NvmlDevice part = nullptr;
    if (nvml.instance(device, i, &part) != 0) continue;  // not every number stands for an instance
    MigInstance instance{.name = text_of(nvml.name, part), .uuid = text_of(nvml.uuid, part)};
    read_memory(nvml, part, instance.total, instance.free, nullptr);
    gpu.instances.push_back(std::move(instance));
  }
}

ProbedGpu read_gpu(const Nvml& nvml, NvmlDevice device) {
  ProbedGpu gpu;
  gpu.name = text_of(nvml.name, device);
  gpu.uuid = text_of(nvml.uuid, device);
  if (NvmlPci pci = {}; nvml.pci(device, &pci) == 0) gpu.pci_bus_id = pci.bus_id;
  read_memory(nvml, device, gpu.total, gpu.free, &gpu.used);
  if (int major = 0, minor = 0; nvml.compute_capability(device, &major, &minor) == 0) {
    gpu.compute_capability = major + minor / 10.0;
  }
  gpu.link = link_of(nvml.link_generation, nvml.link_width, device);
  gpu.link_at_most = link_of(nvml.most_link_generation, nvml.most_link_width, device);
  gpu.processes = read_processes(nvml, device);
  read_instances(nvml, device, gpu);
  return gpu;
}

// Compares PCI addresses. NVML writes the domain with eight digits, CUDA with four.
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
  bind_newer(library, nvml);
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

bool read_cuda_devices(const std::string& library_name, std::vector<ProbedGpu>& gpus) {
  constexpr int no_device = 100;  // CUDA_ERROR_NO_DEVICE: CUDA_VISIBLE_DEVICES hides them all
  const CudaDriver driver(library_name);
  if (!driver.is_there() || !driver.lacking_query().empty()) return false;
  const int status = driver->init(0);
  if (status == no_device) return true;
  int count = 0;
  if (status != 0 || driver->device_count(&count) != 0) return false;
  for (int device = 0; device < count; ++device) {
    std::array<char, 32> id = {};
    std::size_t bytes = 0;
    if (driver->bus_of_device(id.data(), static_cast<int>(id.size()), device) != 0 ||
        driver->device_memory(&bytes, device) != 0) {
      continue;
    }
    const auto gpu = std::ranges::find_if(
        gpus, [&](const ProbedGpu& g) { return is_same_bus(g.pci_bus_id, id.data()); });
    if (gpu == gpus.end() || gpu->ordinal) continue;
    gpu->ordinal = device;
    gpu->cuda_total = Bytes(static_cast<std::int64_t>(bytes));
  }
  return true;
}

}  // namespace stowage
