#include "estimator/memory/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/memory/arena.hpp"

namespace stowage {

namespace {

constexpr Bytes pytorch_block{512};
constexpr Bytes driver_segment{2 << 20};
constexpr Bytes cublas_workspace{8'519'680};
constexpr Bytes cublas_workspace_hopper{33'554'432};

// Kernels that the libraries load on first use, outside any allocator. Public reports put the
// growth of the first iterations at 50 to 200 MiB for both together (facts gathered in
// docs/accounting.md); the middle of that, until a calibration measures it.
constexpr Bytes library_kernels{64 << 20};

bool calls_cudnn(const KernelNode& node) {
  if (node.convolution >= 0) return true;
  return node.kernel == Kernel::batch_norm_forward || node.kernel == Kernel::batch_norm_inference;
}

bool calls_cublas(const KernelNode& node) {
  switch (node.kernel) {
    case Kernel::linear_forward:
    case Kernel::linear_backward_data:
    case Kernel::linear_backward_filter:
    case Kernel::matmul:
      return true;
    default:
      return false;
  }
}

Bytes largest_live(const StepMemory& memory) {
  const std::vector<Bytes> live = live_bytes(memory.uses, memory.steps);
  return live.empty() ? Bytes() : peak(live).bytes;
}

std::vector<Bytes> live_without_workspaces(const SizedStep& step, MemoryRules rules,
                                           const std::vector<Touches>& touches) {
  rules.with_workspaces = false;
  const StepMemory bare = step_memory(step, rules, touches);
  return live_bytes(bare.uses, bare.steps);
}

Bytes arena_bytes(const StepMemory& memory) {
  std::vector<ArenaRequest> requests(memory.uses.size());
  for (const Interval& interval : lifetimes(memory.uses, memory.steps)) {
    ArenaRequest& request = requests[static_cast<std::size_t>(interval.use)];
    request.live.push_back({interval.begin, interval.end});
    request.bytes = interval.bytes;
  }
  return pack_arena(requests).peak;
}

/// What the runtime takes from the driver for a step whose live bytes peak at `tensor_bytes`.
Bytes reserved(Runtime runtime, const StepMemory& memory, Bytes tensor_bytes) {
  switch (runtime) {
    case Runtime::ideal:
      return tensor_bytes;
    case Runtime::stowage:
      return arena_bytes(memory);
    case Runtime::pytorch:
      return round_up(tensor_bytes, driver_segment);
  }
  return tensor_bytes;
}

Bytes context_bytes(const Card& card, const CheckSettings& settings) {
  if (settings.runtime == Runtime::ideal) return Bytes();
  return settings.context.value_or(card.context);
}

std::vector<RuntimeRow> runtime_rows(const CheckReport& report, const StepGraph& graph,
                                     const Card& card, const CheckSettings& settings) {
  std::vector<RuntimeRow> rows;
  if (report.reserved_bytes != report.tensor_bytes) {
    rows.push_back(
        {settings.runtime == Runtime::stowage ? "arena rounding and gaps" : "allocator rounding",
         report.reserved_bytes - report.tensor_bytes,
         settings.runtime == Runtime::stowage
             ? "256-byte alignment and packing"
             : "segments of 2 MiB; fragmentation is not simulated yet"});
  }
  if (settings.runtime != Runtime::ideal) {
    rows.push_back({"CUDA context", context_bytes(card, settings),
                    settings.context ? "given by --context" : card.context_source});
  }
  const std::vector<RuntimeRow> libraries = library_rows(graph, settings.runtime);
  rows.insert(rows.end(), libraries.begin(), libraries.end());
  return rows;
}

std::vector<EngineFallback> fallbacks(const SizedStep& step, const std::vector<int>& engine) {
  std::vector<EngineFallback> result;
  for (std::size_t i = 0; i < engine.size(); ++i) {
    if (engine[i] == 0) continue;
    const std::vector<Engine>& choices = step.engines[i];
    result.push_back(
        {step.graph->nodes[i].name, choices.front(), choices[static_cast<std::size_t>(engine[i])]});
  }
  return result;
}

Bytes loaded_bytes(const SizedStep& step, Bytes granularity) {
  Bytes bytes;
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    const StorageClass kind = step.graph->storages[i].storage_class;
    if (kind == StorageClass::parameter || kind == StorageClass::buffer) {
      bytes += round_up(step.storage_bytes[i], granularity);
    }
  }
  return bytes;
}

Bytes input_bytes(const SizedStep& step) {
  Bytes bytes;
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    if (step.graph->storages[i].storage_class == StorageClass::input) {
      bytes += step.storage_bytes[i];
    }
  }
  return bytes;
}

std::string culprit_of(const CheckReport& report, const SizedStep& step) {
  if (report.fits) return {};
  const FootprintRow& largest = report.footprint.rows.front();
  return fmt::format("{} needs {} at once; its largest tensor is {} ({})",
                     step.graph->nodes[static_cast<std::size_t>(report.footprint.step)].name,
                     format_bytes(report.footprint.total), largest.name,
                     format_bytes(largest.bytes));
}

}  // namespace

std::string_view to_string(Runtime runtime) {
  switch (runtime) {
    case Runtime::ideal:
      return "ideal";
    case Runtime::stowage:
      return "stowage";
    case Runtime::pytorch:
      return "pytorch";
  }
  return "ideal";
}

KernelSet kernel_set_of(Runtime runtime) {
  return runtime == Runtime::stowage ? KernelSet::stowage : KernelSet::pytorch;
}

Bytes runtime_granularity(Runtime runtime) {
  switch (runtime) {
    case Runtime::ideal:
      return Bytes(1);
    case Runtime::stowage:
      return Bytes(1);
    case Runtime::pytorch:
      return pytorch_block;
  }
  return Bytes(1);
}

std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                           const CheckSettings& settings) {
  std::vector<RuntimeBuffer> buffers = settings.resident;
  if (settings.runtime != Runtime::pytorch) return buffers;
  const Bytes each = card.compute_capability >= 9 && card.compute_capability < 10
                         ? cublas_workspace_hopper
                         : cublas_workspace;
  bool forward = false;
  bool backward = false;
  for (const KernelNode& node : graph.nodes) {
    if (!calls_cublas(node)) continue;
    (node.phase == Phase::backward ? backward : forward) = true;
  }
  if (forward) buffers.push_back({"cuBLAS workspace", each});
  if (backward) buffers.push_back({"cuBLAS workspace of autograd's thread", each});
  return buffers;
}

std::vector<RuntimeRow> library_rows(const StepGraph& graph, Runtime runtime) {
  std::vector<RuntimeRow> rows;
  if (runtime == Runtime::ideal) return rows;
  const std::string source = "50 to 200 MiB for cuBLAS and cuDNN together in public reports";
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), calls_cublas)) {
    rows.push_back({"cuBLAS kernels", library_kernels, source});
  }
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), calls_cudnn)) {
    rows.push_back({"cuDNN kernels", library_kernels, source});
  }
  return rows;
}

Bytes outside_allocator(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  Bytes bytes = context_bytes(card, settings);
  for (const RuntimeRow& row : library_rows(graph, settings.runtime)) bytes += row.bytes;
  return bytes;
}

Bytes allocator_limit(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  const Bytes left = card.cuda_total - settings.in_use - settings.reserve -
                     outside_allocator(graph, card, settings);
  if (settings.runtime != Runtime::pytorch || left < Bytes()) return left;
  return Bytes(left.count() / driver_segment.count() * driver_segment.count());
}

std::vector<int> fitting_engines(const SizedStep& step, const std::vector<Bytes>& live, Bytes limit,
                                 Bytes granularity) {
  std::vector<int> chosen(step.engines.size(), 0);
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    const std::vector<Engine>& choices = step.engines[i];
    const auto fits = [&](const Engine& engine) {
      return live[i] + round_up(engine.workspace, granularity) <= limit;
    };
    const auto first = std::find_if(choices.begin(), choices.end(), fits);
    const auto taken = first != choices.end()
                           ? first
                           : std::min_element(choices.begin(), choices.end(),
                                              [](const Engine& a, const Engine& b) {
                                                return a.workspace < b.workspace;
                                              });
    if (!choices.empty()) chosen[i] = static_cast<int>(taken - choices.begin());
  }
  return chosen;
}

CheckReport check(const SizedStep& step, const Card& card, const CheckSettings& settings) {
  CheckReport report;
  const Bytes granularity = runtime_granularity(settings.runtime);
  MemoryRules rules{.granularity = granularity,
                    .buffers = runtime_buffers(*step.graph, card, settings)};
  const Bytes limit = allocator_limit(*step.graph, card, settings);
  const std::vector<Touches> touches = storage_touches(*step.graph);
  rules.engine =
      fitting_engines(step, live_without_workspaces(step, rules, touches), limit, granularity);

  {  // one StepMemory at a time: a large network's is a tenth of all memory
    const StepMemory steady = step_memory(step, rules, touches);
    report.footprint = peak_footprint(steady);
    report.tensor_bytes = report.footprint.total;
    report.reserved_bytes = reserved(settings.runtime, steady, report.tensor_bytes);
  }
  report.peak_at = step.graph->nodes[static_cast<std::size_t>(report.footprint.step)].name;
  const Bytes context = outside_allocator(*step.graph, card, settings);
  report.device_bytes = report.reserved_bytes + context;
  report.runtime_rows = runtime_rows(report, *step.graph, card, settings);

  const Bytes loaded = loaded_bytes(step, granularity);
  report.phases.push_back({"after loading", loaded, loaded + context_bytes(card, settings)});
  if (step.graph->settings.mode == Mode::train) {
    rules.step = StepNumber::first;
    const StepMemory first = step_memory(step, rules, touches);
    const Bytes tensors = largest_live(first);
    report.phases.push_back(
        {"first step", tensors, reserved(settings.runtime, first, tensors) + context});
  }
  report.phases.push_back({"steady steps", report.tensor_bytes, report.device_bytes});

  report.host_bytes = input_bytes(step) + Bytes(step.graph->host_state_bytes);
  report.total_bytes = card.cuda_total;
  report.available_bytes = card.cuda_total - settings.in_use - settings.reserve;
  report.headroom = report.available_bytes - report.device_bytes;
  report.fits = report.headroom >= Bytes();
  report.fallbacks = fallbacks(step, rules.engine);
  report.workspace_origin = step.workspace_origin;
  report.culprit = culprit_of(report, step);
  return report;
}

}  // namespace stowage
