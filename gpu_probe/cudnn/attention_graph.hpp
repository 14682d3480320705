// Scaled dot product attention as cuDNN's operation graph, in the way PyTorch 2.15 describes it
// through cudnn-frontend (ATen/native/cudnn/MHA.cpp; CompositeSDPANode and
// CompositeSDPABackwardNode of cudnn-frontend 1.23 to 1.32): products, pointwise operations and
// reductions. All tensors but the operands are virtual.
//
//   forward   q k^T -> * scale -> + bias -> causal mask -> softmax, logsumexp -> dropout -> * v
//   backward  the same to the softmax, from the logsumexp; dO o summed over a row, in float32;
//             dv = p^T dO; dk = ds^T q; dq = ds k, summed in float32 and then converted. Where key
//             heads are shared, dk and dv are made for each query head and summed.
//
// cuDNN compares this graph with those that its attention engines know. For calls without a mask
// newer frontends describe attention as a single operation instead; it had the same workspaces.
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/library.hpp"
#include "gpu_probe/cudnn/target.hpp"

namespace stowage {

/// The ids of the tensors that are not virtual. Whoever executes the graph gives their addresses.
enum class AttentionTensor : std::int64_t {
  query = 1,
  key,
  value,
  bias,
  output,
  statistics,  ///< the rows' logsumexp, float32
  gradient,    ///< the output's
  query_gradient,
  key_gradient,
  value_gradient,
  // Scratch of the backward graph, float32: the query's gradient as it is summed up, which must be
  // 0 before, and one number for each row.
  query_sum,
  row_sum,
  // Single numbers; their addresses are the host's.
  scale,       ///< of the scores
  hidden,      ///< causal: the score of hidden positions
  row_factor,  ///< backward, of row_sum: 1 - dropout
  kept,        ///< with dropout: 1 / (1 - dropout)
  seed,        ///< with dropout, int64
  offset,      ///< with dropout, int64
};

/// Throws LibraryFailure.
[[nodiscard]] CudnnDescriptor attention_graph(const CudnnLibrary& library,
                                              const AttentionQuery& query,
                                              const CudnnTarget& target = {});

}  // namespace stowage
