#include "gpu_probe/device/this_host.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace stowage {
namespace {

double flops_a_core(const std::string& cpuinfo) {
  if (has_cpu_flag(cpuinfo, "avx512f")) return 60e9;
  return has_cpu_flag(cpuinfo, "avx2") ? 30e9 : 8e9;
}

}  // namespace

Host host_from(const ProbedHost& probed, const std::string& cpuinfo) {
  const int cores = std::max(probed.cores, 1);
  return {.name = probed.cpu.empty() ? "this machine" : probed.cpu,
          .memory = probed.memory,
          .pinned_limit = Bytes(probed.memory.count() / 2),
          .cpu_flops = cores * flops_a_core(cpuinfo),
          .memory_bandwidth = std::min(cores * 10e9, 100e9),
          .kernel_latency = 2e-6,
          .link_latency = 10e-6,
          .source = "this machine"};
}

Host this_host() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  return host_from(probe_host(), {std::istreambuf_iterator<char>(cpuinfo), {}});
}

}  // namespace stowage
