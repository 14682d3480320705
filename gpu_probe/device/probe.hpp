// probe(): what this machine has: its GPUs as the driver reports them, its driver and cuDNN, its
// host.
//
// The driver's libraries (NVML, libcuda) are opened when they are asked and needed neither to build
// nor to start. Nothing here creates a CUDA context or changes a setting. Measuring is
// calibrate.hpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

struct PcieLink {
  int generation = 0;
  int width = 0;
  bool operator==(const PcieLink&) const = default;
};

struct ProbedGpu {
  std::string name;        ///< as the driver writes it; find_card() understands it
  std::string uuid;        ///< "" where not told
  std::string pci_bus_id;  ///< "00000000:65:00.0"
  double compute_capability = 0;
  Bytes total;  ///< what nvidia-smi prints
  Bytes free;
  std::optional<Bytes> cuda_total;             ///< libcuda's total: the ceiling
  std::optional<PcieLink> link, link_at_most;  ///< now (links sleep when idle), and at most
};

struct ProbedHost {
  std::string cpu;  ///< the model's name
  int cores = 0;    ///< that this process may use
  Bytes memory;     ///< physical, or the control group's limit where that is less
  Bytes available;  ///< that can be had without swapping
};

struct Probe {
  std::vector<ProbedGpu> gpus;  ///< in PCI order
  std::string driver;           ///< "580.95.05"; "" without one
  std::string cuda;             ///< the newest CUDA that the driver runs, "13.0"; "" without one
  std::string cudnn;            ///< "9.19.0"; "" without one
  std::string why_no_gpu;       ///< one sentence; "" where there are GPUs
  std::string why_no_cudnn;
  ProbedHost host;
};

/// The libraries' names, so that a test may put its own in their place.
struct DriverLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
};

[[nodiscard]] Probe probe(const DriverLibraries& libraries = {});

/// The host alone. Reads /proc and the control group; what cannot be read stays 0 or "".
[[nodiscard]] ProbedHost probe_host();

/// What a /proc text says. Exposed for tests.
[[nodiscard]] std::string cpu_name(const std::string& cpuinfo);
[[nodiscard]] bool has_cpu_flag(const std::string& cpuinfo, const std::string& flag);
/// `key` of /proc/meminfo ("MemTotal"); 0 where it is missing.
[[nodiscard]] Bytes meminfo(const std::string& text, const std::string& key);

}  // namespace stowage
