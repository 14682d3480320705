#include "estimator/memory/runtime_buffers.hpp"

#include "estimator/memory/library_calls.hpp"
#include "estimator/memory/partition.hpp"

namespace stowage {

namespace {

constexpr Bytes cublas_workspace{8'519'680};
constexpr Bytes cublas_workspace_since_hopper{33'554'432};

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

std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                           const CheckSettings& settings) {
  std::vector<RuntimeBuffer> buffers = settings.resident;
  const std::vector<RuntimeBuffer> parallel = parallel_buffers(graph);
  buffers.insert(buffers.end(), parallel.begin(), parallel.end());
  if (settings.runtime != Runtime::pytorch) return buffers;
  const Bytes each =
      card.compute_capability >= 9 ? cublas_workspace_since_hopper : cublas_workspace;
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

}  // namespace stowage
