// probe(): what this machine has: its GPUs as the driver reports them, its driver and cuDNN, its
// host.
//
// The driver's libraries (NVML, libcuda) are opened when they are asked and needed neither to build
// nor to start. Nothing here creates a CUDA context or changes a setting. Measuring is
// calibrate.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "gpu_probe/driver/found_libraries.hpp"

namespace stowage {

struct PcieLink {
  int generation = 0;
  int width = 0;
  bool operator==(const PcieLink&) const = default;
};

/// A program that uses a GPU.
struct GpuProcess {
  std::int64_t pid = 0;
  std::string name;             ///< of its program; "" where it is not to be read
  std::optional<Bytes> memory;  ///< none: the driver does not tell (inside containers, say)
  bool operator==(const GpuProcess&) const = default;
};

/// A part of a GPU that is divided into several (multi-instance GPU).
struct MigInstance {
  std::string name;  ///< "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
  std::string uuid;  ///< "MIG-..."; CUDA_VISIBLE_DEVICES takes it
  Bytes total, free;
  bool operator==(const MigInstance&) const = default;
};

struct ProbedGpu {
  std::string name;        ///< as the driver writes it; find_card() understands it
  std::string uuid;        ///< "" where not told
  std::string pci_bus_id;  ///< "00000000:65:00.0"
  double compute_capability = 0;
  Bytes total;  ///< what nvidia-smi prints
  Bytes free, used;
  std::vector<GpuProcess> processes;  ///< by pid
  bool is_divided = false;            ///< multi-instance GPU: CUDA sees an instance, not the whole
  std::vector<MigInstance> instances;
  std::optional<int> ordinal;  ///< CUDA's number of it; none: CUDA does not show it
  /// What CUDA can have of it, of an instance where it is divided: the ceiling.
  std::optional<Bytes> cuda_total;
  std::optional<PcieLink> link, link_at_most;  ///< now (links sleep when idle), and at most
};

struct ProbedHost {
  std::string cpu;  ///< the model's name
  int cores = 0;    ///< that this process may use, of the affinity and of the control groups
  Bytes memory;     ///< physical, or the control groups' limit where that is less
  Bytes available;  ///< that can be had without swapping
  bool is_limited = false;      ///< memory is the control groups' limit
  std::optional<Bytes> locked;  ///< how much it may lock by itself (`ulimit -l`); none: no limit
};

struct Probe {
  std::vector<ProbedGpu> gpus;                 ///< in PCI order
  bool asked_cuda = false;                     ///< libcuda said which of them it shows
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES, where it is set
  std::string driver;                          ///< "580.95.05"; "" without one
  std::string cuda;        ///< the newest CUDA that the driver runs, "13.0"; "" without one
  std::string cudnn;       ///< "9.19.0"; "" without one
  std::string why_no_gpu;  ///< one sentence; "" where there are GPUs
  std::string why_no_cudnn;
  std::vector<FoundLibrary> libraries;  ///< what else a run on the GPU takes
  ProbedHost host;
};

/// The libraries' names, so that a test may put its own in their place.
struct DriverLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
};

[[nodiscard]] Probe probe(const DriverLibraries& libraries = {});
/// The GPUs and the driver alone: the rest stays open. A few milliseconds.
[[nodiscard]] Probe probe_gpus(const DriverLibraries& libraries = {});

/// The host alone. Reads /proc and the control group; what cannot be read stays 0 or "".
[[nodiscard]] ProbedHost probe_host();

/// What a /proc text says. Exposed for tests.
[[nodiscard]] std::string cpu_name(const std::string& cpuinfo);
[[nodiscard]] bool has_cpu_flag(const std::string& cpuinfo, const std::string& flag);
/// `key` of /proc/meminfo ("MemTotal"); 0 where it is missing.
[[nodiscard]] Bytes meminfo(const std::string& text, const std::string& key);

}  // namespace stowage
