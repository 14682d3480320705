// Scaled dot product attention as cuDNN's operation graph, as PyTorch 2.15 describes it through
// cudnn-frontend (ATen/native/cudnn/MHA.cpp; CompositeSDPANode and CompositeSDPABackwardNode of
// cudnn-frontend 1.23 to 1.32): products, pointwise operations and reductions over tensors that are
// virtual but for the operands. For the sources that are built with cuDNN's headers only.
//
//   forward   q k^T -> * scale -> + bias -> causal mask -> softmax, logsumexp -> dropout -> * v
//   backward  the same to the softmax, from the logsumexp; dO o summed over a row, in float32;
//             dv = p^T dO; dk = ds^T q; dq = ds k, summed in float32 and then converted. Where key
//             heads are shared, dk and dv are made for each query head and summed.
//
// cuDNN matches this graph against those that its attention engines know. For calls without a mask
// newer frontends give it one operation of its own instead, which had the same workspaces.
#pragma once

#include "estimator/workspace/workspace_source.hpp"
#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

/// Throws LibraryFailure.
[[nodiscard]] CudnnDescriptor attention_graph(const CudnnLibrary& library,
                                              const AttentionQuery& query);

}  // namespace stowage
