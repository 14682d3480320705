// probe(): what this machine has: GPUs as the driver reports them, the driver, cuDNN, the host.
//
// The driver's libraries (NVML, libcuda) are opened when they are asked; the program is built and
// starts without them. Nothing here creates a CUDA context or changes a setting. calibrate.hpp
// measures.
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
  std::string name;             ///< of its program; "" where it cannot be read
  std::optional<Bytes> memory;  ///< none: the driver does not tell (in containers, for example)
  bool operator==(const GpuProcess&) const = default;
};

/// An instance of a divided GPU (multi-instance GPU).
struct MigInstance {
  std::string name;  ///< "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
  std::string uuid;  ///< "MIG-...", as CUDA_VISIBLE_DEVICES takes it
  Bytes total, free;
  bool operator==(const MigInstance&) const = default;
};

struct ProbedGpu {
  std::string name;        ///< in the driver's words; find_card() knows them
  std::string uuid;        ///< "": the driver does not tell
  std::string pci_bus_id;  ///< "00000000:65:00.0"
  double compute_capability = 0;
  Bytes total;  ///< as nvidia-smi prints it
  Bytes free, used;
  std::vector<GpuProcess> processes;  ///< by pid
  bool is_divided = false;            ///< multi-instance GPU: CUDA shows one instance
  std::vector<MigInstance> instances;
  std::optional<int> ordinal;  ///< CUDA's number; none: CUDA does not show the GPU
  /// The most that CUDA can allocate on it; of a divided GPU, on the instance.
  std::optional<Bytes> cuda_total;
  std::optional<PcieLink> link, link_at_most;  ///< now (idle links are slower), and at its best
};

struct ProbedHost {
  std::string cpu;              ///< the processor's name
  int cores = 0;                ///< that affinity and control groups let this process use
  Bytes memory;                 ///< physical, or the control groups' limit if that is less
  Bytes available;              ///< without swapping
  bool is_limited = false;      ///< `memory` is the control groups' limit
  std::optional<Bytes> locked;  ///< how much it may lock (`ulimit -l`); none: no limit
};

struct Probe {
  std::vector<ProbedGpu> gpus;                 ///< in PCI order
  bool asked_cuda = false;                     ///< libcuda told which GPUs it shows
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES; none: not set
  std::string driver;                          ///< "580.95.05"; "" without a driver
  std::string cuda;   ///< the newest CUDA that the driver can run, "13.0"; "" without a driver
  std::string cudnn;  ///< "9.19.0"; "" without cuDNN
  std::string no_gpu_reason;  ///< one sentence; "" where there are GPUs
  std::string no_cudnn_reason;
  std::vector<FoundLibrary> libraries;  ///< that a run on the GPU needs besides cuDNN
  ProbedHost host;
};

/// The libraries' names. Tests replace them.
struct DriverLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
};

[[nodiscard]] Probe probe(const DriverLibraries& libraries = {});
/// Only the GPUs and the driver; the other members keep their defaults. Takes a few milliseconds.
[[nodiscard]] Probe probe_gpus(const DriverLibraries& libraries = {});

/// Only the host. Reads /proc and the control groups; a value that cannot be read stays 0 or "".
[[nodiscard]] ProbedHost probe_host();

/// Values in a text of /proc. Exposed for tests.
[[nodiscard]] std::string cpu_name(const std::string& cpuinfo);
[[nodiscard]] bool has_cpu_flag(const std::string& cpuinfo, const std::string& flag);
/// The value of `key` in /proc/meminfo ("MemTotal"); 0 where it is missing.
[[nodiscard]] Bytes meminfo(const std::string& text, const std::string& key);

}  // namespace stowage
