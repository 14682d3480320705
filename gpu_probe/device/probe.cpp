#include "gpu_probe/device/probe.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "estimator/card/software_stack.hpp"
#include "gpu_probe/cudnn/session.hpp"
#include "gpu_probe/device/nvml.hpp"
#include "gpu_probe/device/process_limits.hpp"

namespace stowage {
namespace {

std::string read_text(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text after the colon in the line of `key`; "" where there is no such line.
std::string field(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find_first_not_of(" \t", key.size());
    if (colon == line.npos || line[colon] != ':') continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

std::string cpu_name(const std::string& cpuinfo) { return field(cpuinfo, "model name"); }

bool has_cpu_flag(const std::string& cpuinfo, const std::string& flag) {
  std::istringstream flags(field(cpuinfo, "flags"));
  return std::find(std::istream_iterator<std::string>(flags), {}, flag) !=
         std::istream_iterator<std::string>();
}

Bytes meminfo(const std::string& text, const std::string& key) {
  const std::string value = field(text, key);
  std::int64_t kibibytes = 0;
  std::from_chars(value.data(), value.data() + value.size(), kibibytes);
  return kibibytes * 1_KiB;
}

ProbedHost probe_host() {
  const std::string memory = read_text("/proc/meminfo");
  ProbedHost host{.cpu = cpu_name(read_text("/proc/cpuinfo")),
                  .cores = usable_cores(),
                  .memory = meminfo(memory, "MemTotal"),
                  .available = meminfo(memory, "MemAvailable")};
  const ProcessLimits limits = process_limits();
  if (limits.memory && *limits.memory < host.memory) {
    host.memory = *limits.memory;
    host.is_limited = true;
    host.available = std::min(host.available, limits.available.value_or(*limits.memory));
  }
  if (limits.cores) host.cores = std::min(host.cores, static_cast<int>(std::ceil(*limits.cores)));
  host.locked = limits.locked;
  return host;
}

Probe probe_gpus(const DriverLibraries& libraries) {
  Probe probe;
  NvmlReport nvml = read_nvml(libraries.nvml);
  probe.gpus = std::move(nvml.gpus);
  probe.driver = nvml.driver;
  probe.cuda = nvml.cuda;
  probe.no_gpu_reason = nvml.error;
  if (!probe.gpus.empty()) probe.asked_cuda = read_cuda_devices(libraries.cuda, probe.gpus);
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    probe.visible_devices = visible;
  }
  return probe;
}

Probe probe(const DriverLibraries& libraries) {
  Probe probe = probe_gpus(libraries);
  const auto cudnn = cudnn_version();
  if (cudnn) probe.cudnn = *cudnn;
  if (!cudnn) probe.no_cudnn_reason = cudnn.error().front().message;
  constexpr int newest_cuda = 13;
  const std::optional<ReleaseVersion> served = parse_version(probe.cuda);
  probe.libraries = found_libraries(served ? served->major : newest_cuda);
  probe.host = probe_host();
  return probe;
}

}  // namespace stowage
