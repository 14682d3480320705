#include "planner/plan/machine.hpp"

namespace stowage {

std::string_view to_string(ProcessorKind kind) {
  return kind == ProcessorKind::gpu ? "gpu" : "cpu";
}

std::string_view to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "device";
    case MemoryKind::pinned:
      return "pinned";
    case MemoryKind::pageable:
      return "pageable";
  }
  return "device";
}

Machine gpu_and_host(const Rates& rates) {
  return {.processors = {{"gpu", ProcessorKind::gpu, gpu_memory, rates.gpu_flops,
                          rates.gpu_bandwidth, rates.gpu_launch, rates.gpu_kernels},
                         {"cpu", ProcessorKind::cpu, pinned_memory, rates.cpu_flops,
                          rates.cpu_bandwidth, rates.cpu_launch}},
          .memories = {{"gpu", MemoryKind::device},
                       {"pinned", MemoryKind::pinned},
                       {"pageable", MemoryKind::pageable}},
          .links = {{"h2d", pinned_memory, gpu_memory, rates.h2d_bandwidth, rates.link_latency},
                    {"d2h", gpu_memory, pinned_memory, rates.d2h_bandwidth, rates.link_latency}}};
}

}  // namespace stowage
