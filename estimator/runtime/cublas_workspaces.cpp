#include "estimator/runtime/cublas_workspaces.hpp"

#include <algorithm>

#include "estimator/runtime/library_calls.hpp"

namespace stowage {

namespace {

constexpr Bytes cublas_workspace{8'519'680};
constexpr Bytes cublas_workspace_since_hopper{33'554'432};

constexpr Bytes cublaslt_workspace{1 << 20};
constexpr ReleaseVersion since_hopper_means_blackwell{2, 12};
constexpr ReleaseVersion lt_shares_workspace{2, 12};

Bytes cublas_bytes(const Card& card, const ReleaseVersion& pytorch) {
  const bool is_hopper = card.compute_capability >= 9 && card.compute_capability < 10;
  const bool is_later = card.compute_capability >= 10;
  return is_hopper || (is_later && pytorch >= since_hopper_means_blackwell)
             ? cublas_workspace_since_hopper
             : cublas_workspace;
}

/// A product with a bias, which is cuBLASLt's.
NodeId first_biased_product(const StepGraph& graph) {
  const auto is_biased = [](const KernelNode& node) {
    return node.kernel == Kernel::linear_forward && node.reads.size() > 2;
  };
  const auto found = std::ranges::find_if(graph.nodes, is_biased);
  if (found == graph.nodes.end()) return {};
  return NodeId::of(static_cast<std::size_t>(found - graph.nodes.begin()));
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

std::vector<RuntimeBuffer> cublas_workspaces(const StepGraph& graph, const Card& card,
                                             const ReleaseVersion& pytorch) {
  std::vector<RuntimeBuffer> buffers;
  const Bytes each = cublas_bytes(card, pytorch);
  const CublasCalls calls = first_cublas_calls(graph);
  if (calls.forward.valid()) {
    buffers.push_back({.name = "cuBLAS workspace", .bytes = each, .first_use = calls.forward});
  }
  if (calls.backward.valid()) {
    buffers.push_back({.name = "cuBLAS workspace of autograd's thread",
                       .bytes = each,
                       .first_use = calls.backward});
  }
  const NodeId biased = first_biased_product(graph);
  if (pytorch < lt_shares_workspace && biased.valid()) {
    buffers.push_back(
        {.name = "cuBLASLt workspace", .bytes = cublaslt_workspace, .first_use = biased});
  }
  return buffers;
}

}  // namespace stowage
