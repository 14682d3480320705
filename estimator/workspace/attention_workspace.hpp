// The workspace of cuDNN's attention: which nodes want one, what they ask a WorkspaceSource, and
// the documented rule where cuDNN cannot be asked (docs/workspaces.md).
//
// PyTorch describes attention to cuDNN through cudnn-frontend, which keeps tensors of its own in
// the same workspace: in the backward pass the float32 sum of the query's gradient, and a float32 a
// row (cudnn-frontend 1.23 to 1.32, node/scaled_dot_product_flash_attention.h).
#pragma once

#include <cstdint>

#include "estimator/step/step_graph.hpp"
#include "estimator/workspace/workspace_source.hpp"

namespace stowage {

/// Whether PyTorch gives this call of attention to cuDNN, or our executor does where cuDNN has it.
[[nodiscard]] bool is_cudnn_attention(const KernelNode& node);

/// Precondition: is_cudnn_attention(node).
[[nodiscard]] AttentionQuery attention_query(const StepGraph& graph, const KernelNode& node,
                                             std::int64_t batch);

/// What cudnn-frontend keeps in the workspace beside the plan's own. For 256 features on compute
/// capability 10.x see frontend_names_engine.
[[nodiscard]] Bytes frontend_workspace(const AttentionQuery& query);

/// Whether cudnn-frontend names the engine itself instead of asking cuDNN for one: backward with
/// 256 features on 10.x (with cuDNN 9.23 and later; there is none before). The query's gradient is
/// not summed in float32 then.
[[nodiscard]] bool frontend_names_engine(const AttentionQuery& query, double compute_capability);

/// cuDNN has no attention for cards before 8.0, which run our executor's own without a workspace.
[[nodiscard]] bool cudnn_has_attention(double compute_capability);

/// All of the workspace, by the rule (docs/workspaces.md).
[[nodiscard]] Bytes rule_attention_workspace(const AttentionQuery& query,
                                             double compute_capability);

}  // namespace stowage
