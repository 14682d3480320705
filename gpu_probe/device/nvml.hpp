// NVML through its C interface: the part that probe() needs, without NVML's header.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/device/probe.hpp"

namespace stowage {

struct NvmlReport {
  std::vector<ProbedGpu> gpus;
  std::string driver, cuda;
  std::string error;  ///< why nothing is reported: no library, or NVML's words
};

[[nodiscard]] NvmlReport read_nvml(const std::string& library);

/// The memory of the GPU at this PCI address that is in use, by all processes. Nullopt: NVML cannot
/// be asked, or does not see the GPU.
[[nodiscard]] std::optional<Bytes> used_by_nvml(const std::string& library,
                                                const std::string& pci_bus_id);

/// Sets ordinal and cuda_total of the GPUs that libcuda shows, found by their PCI addresses.
/// libcuda shows those that CUDA_VISIBLE_DEVICES names, and one instance of a divided GPU. Returns
/// false and sets nothing where libcuda is missing or refuses.
[[nodiscard]] bool read_cuda_devices(const std::string& library, std::vector<ProbedGpu>& gpus);

}  // namespace stowage
