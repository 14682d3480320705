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
          .links = {{"h2d", pinned_memory, gpu_memory, rates.h2d_bandwidth, rates.h2d_latency},
                    {"d2h", gpu_memory, pinned_memory, rates.d2h_bandwidth, rates.d2h_latency}}};
}

Machine gpu_and_host(const Rates& rates, const SizedStep& step) {
  Machine machine = gpu_and_host(rates);
  if (!rates.measured) return machine;
  machine.measured_on = rates.measured->backend;
  for (std::size_t i = 0; i < step.graph->nodes.size(); ++i) {
    const NodeId node = NodeId::of(i);
    for (Processor& processor : machine.processors) {
      const bool is_gpu = processor.kind == ProcessorKind::gpu;
      const CallSeconds& measured = is_gpu ? rates.measured->gpu : rates.measured->cpu;
      if (measured.empty()) continue;
      processor.node_seconds.push_back(is_gpu ? gpu_seconds(rates, step, node)
                                              : cpu_seconds(rates, step, node));
    }
  }
  return machine;
}

}  // namespace stowage
