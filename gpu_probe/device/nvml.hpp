// NVML through its C interface, as far as probe() needs it. NVML's own header is not needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/device/probe.hpp"

namespace stowage {

struct NvmlReport {
  std::vector<ProbedGpu> gpus;
  std::string driver, cuda;
  std::string error;  ///< why there is nothing to report: no library, or NVML's words
};

[[nodiscard]] NvmlReport read_nvml(const std::string& library);

/// What is in use of the GPU at this address, by all processes; nullopt: NVML cannot be asked, or
/// does not see it.
[[nodiscard]] std::optional<Bytes> used_by_nvml(const std::string& library,
                                                const std::string& pci_bus_id);

/// Sets ordinal and cuda_total from libcuda, by PCI bus id. libcuda shows what CUDA_VISIBLE_DEVICES
/// names, of a divided GPU one instance. False, and nothing set: libcuda is missing or refuses.
[[nodiscard]] bool read_cuda_devices(const std::string& library, std::vector<ProbedGpu>& gpus);

}  // namespace stowage
