#include "estimator/memory/runtime.hpp"

#include <algorithm>

#include "estimator/memory/partition.hpp"

namespace stowage {

namespace {

constexpr Bytes pytorch_block{512};
constexpr Bytes tensorflow_chunk{256};
constexpr Bytes driver_segment{2 << 20};
constexpr Bytes cublas_workspace{8'519'680};
constexpr Bytes cublas_workspace_hopper{33'554'432};

// Kernels that the libraries load on first use, outside any allocator. Public reports put the
// growth of the first iterations at 50 to 200 MiB for both together (facts gathered in
// docs/accounting.md); the middle of that, until a calibration measures it.
constexpr Bytes library_kernels{64 << 20};

// What a communicator took of each of two A100s, buffers and kernels together: 1.28 GiB were left
// after the rest was gone (Bekman, "Machine Learning Engineering", training/performance). By NCCL's
// source a connection has 9,633,792 bytes a channel; how many there are depends on the machine.
constexpr Bytes nccl_bytes{1311 << 20};

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

/// The first node of forward and of backward that calls cuBLAS; none: none does.
struct CublasCalls {
  NodeId forward, backward;
};

CublasCalls first_cublas_calls(const StepGraph& graph) {
  CublasCalls calls;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!calls_cublas(graph.nodes[i])) continue;
    NodeId& first = graph.nodes[i].phase == Phase::backward ? calls.backward : calls.forward;
    if (!first.valid()) first = NodeId::of(i);
  }
  return calls;
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
    case Runtime::tensorflow:
      return "tensorflow";
  }
  return "ideal";
}

KernelSet kernel_set_of(Runtime runtime) {
  const bool own = runtime == Runtime::stowage || runtime == Runtime::tensorflow;
  return own ? KernelSet::stowage : KernelSet::pytorch;
}

Bytes runtime_granularity(Runtime runtime) {
  switch (runtime) {
    case Runtime::ideal:
      return Bytes(1);
    case Runtime::stowage:
      return Bytes(1);
    case Runtime::pytorch:
      return pytorch_block;
    case Runtime::tensorflow:
      return tensorflow_chunk;
  }
  return Bytes(1);
}

std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                           const CheckSettings& settings) {
  std::vector<RuntimeBuffer> buffers = settings.resident;
  const std::vector<RuntimeBuffer> parallel = parallel_buffers(graph);
  buffers.insert(buffers.end(), parallel.begin(), parallel.end());
  if (settings.runtime != Runtime::pytorch) return buffers;
  const Bytes each = card.compute_capability >= 9 && card.compute_capability < 10
                         ? cublas_workspace_hopper
                         : cublas_workspace;
  const CublasCalls calls = first_cublas_calls(graph);
  if (calls.forward.valid()) {
    buffers.push_back({.name = "cuBLAS workspace", .bytes = each, .first_use = calls.forward});
  }
  if (calls.backward.valid()) {
    buffers.push_back({.name = "cuBLAS workspace of autograd's thread",
                       .bytes = each,
                       .first_use = calls.backward});
  }
  return buffers;
}

std::vector<LibraryLoad> library_loads(const StepGraph& graph, Runtime runtime) {
  std::vector<LibraryLoad> loads;
  if (runtime == Runtime::ideal) return loads;
  const auto add = [&](std::string name, auto calls) {
    const auto first = std::ranges::find_if(graph.nodes, calls);
    if (first == graph.nodes.end()) return;
    const auto node = static_cast<std::size_t>(first - graph.nodes.begin());
    loads.push_back({std::move(name), library_kernels, NodeId::of(node)});
  };
  add("cuBLAS", calls_cublas);
  add("cuDNN", calls_cudnn);
  return loads;
}

std::vector<RuntimeRow> library_rows(const StepGraph& graph, Runtime runtime) {
  std::vector<RuntimeRow> rows;
  for (const LibraryLoad& load : library_loads(graph, runtime)) {
    rows.push_back({load.name + " kernels", load.bytes,
                    "50 to 200 MiB for cuBLAS and cuDNN together in public reports"});
  }
  if (graph.settings.parallel.is_parallel()) {
    rows.push_back({"NCCL", nccl_bytes, "1.28 GiB on each of two A100s in a public report"});
  }
  return rows;
}

Bytes context_bytes(const Card& card, const CheckSettings& settings) {
  if (settings.runtime == Runtime::ideal) return Bytes();
  return settings.context.value_or(card.context);
}

Bytes outside_allocator(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  Bytes bytes = context_bytes(card, settings);
  for (const RuntimeRow& row : library_rows(graph, settings.runtime)) bytes += row.bytes;
  return bytes;
}

Bytes allocator_limit(const StepGraph& graph, const Card& card, const CheckSettings& settings) {
  const Bytes left = card.cuda_total - settings.in_use - settings.reserve -
                     outside_allocator(graph, card, settings);
  if (settings.runtime == Runtime::tensorflow) {
    const Bytes room = tensorflow_room(library_loads(graph, settings.runtime),
                                       tensorflow_card(card, settings), settings.tensorflow);
    return std::min(left, room);
  }
  if (settings.runtime != Runtime::pytorch || left < Bytes()) return left;
  return Bytes(left.count() / driver_segment.count() * driver_segment.count());
}

TensorFlowCard tensorflow_card(const Card& card, const CheckSettings& settings) {
  return {.total = card.cuda_total,
          .in_use = settings.in_use,
          .context = context_bytes(card, settings),
          .compute_capability_major = static_cast<int>(card.compute_capability)};
}

}  // namespace stowage
