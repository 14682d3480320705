// The workspace of cuDNN's attention: which nodes need one, their query for a WorkspaceSource, and
// the documented rule if cuDNN is not available (docs/workspaces.md).
//
// PyTorch calls cuDNN's attention through cudnn-frontend, which places its own tensors in the same
// workspace: in the backward pass the float32 sum of the query's gradient, and one float32 per row
// (cudnn-frontend 1.23 to 1.32, node/scaled_dot_product_flash_attention.h).
#pragma once

#include <cstdint>

#include "estimator/step/step_graph.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// Whether the node is an attention that PyTorch runs in cuDNN, or that our executor runs there if
/// cuDNN supports it.
[[nodiscard]] bool is_cudnn_attention(const KernelNode& node);

/// Precondition: is_cudnn_attention(node).
[[nodiscard]] AttentionQuery attention_query(const StepGraph& graph, const KernelNode& node,
                                             std::int64_t batch);

/// The bytes that cudnn-frontend adds to the plan's own workspace. For 256 features on compute
/// capability 10.x see frontend_names_engine().
[[nodiscard]] Bytes frontend_workspace(const AttentionQuery& query);

/// Whether cudnn-frontend chooses the engine itself instead of asking cuDNN: backward with 256
/// features on compute capability 10.x (cuDNN 9.23 and later; earlier versions have no engine for
/// it). The query's gradient is not summed in float32 then.
[[nodiscard]] bool frontend_names_engine(const AttentionQuery& query, double compute_capability);

/// cuDNN has no attention for compute capability below 8.0; our executor uses its own kernels
/// there, without a workspace.
[[nodiscard]] bool cudnn_has_attention(double compute_capability);

/// The whole workspace by the rule (docs/workspaces.md).
[[nodiscard]] Bytes rule_attention_workspace(const AttentionQuery& query,
                                             double compute_capability);

}  // namespace stowage
