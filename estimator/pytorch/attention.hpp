// PyTorch's fused attention: the operations of its three kernels, and the memory that they allocate
// internally.
//
// Sources, PyTorch 2.15: ATen/native/transformers/cuda/flash_attn/flash_api.cpp mha_bwd,
// cuda/attention_backward.cu and cuda/mem_eff_attention/kernel_backward.h (workspace_size and the
// list of kernels in cutlassB.h), cudnn/MHA.cpp. cuDNN's own workspace comes from a WorkspaceSource
// (workspace/attention_workspace.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

enum class AttentionImplementation { flash, efficient, math, cudnn };
/// The word of the attribute `implementation`.
[[nodiscard]] std::string_view to_string(AttentionImplementation implementation);

/// The sizes of a call; the query is [batch, heads, queries, features]. With five axes the first
/// two are the batch; with three there is one head.
struct AttentionSizes {
  Affine batch;
  std::int64_t heads = 0;
  std::int64_t groups = 1;  ///< query heads that share a key and a value head
  std::int64_t queries = 0, keys = 0;
  std::int64_t features = 0, value_features = 0;
};
/// Precondition: all have the same number of axes, at least three; only the first axis depends on
/// the batch; there is at least one head.
[[nodiscard]] AttentionSizes attention_sizes(const Shape& query, const Shape& key,
                                             const Shape& value);

/// Operations of one of the two products over all heads. `features`: the length of a query or a
/// value.
[[nodiscard]] Affine attention_product_flops(const AttentionSizes& sizes, std::int64_t features);
/// Operations of the fused kernels: two products forward, five backward.
[[nodiscard]] Affine fused_attention_flops(const AttentionSizes& sizes);
[[nodiscard]] Affine fused_attention_backward_flops(const AttentionSizes& sizes);

/// Bytes that the forward kernel allocates internally.
[[nodiscard]] Affine attention_scratch(AttentionImplementation implementation,
                                       const AttentionSizes& sizes, DataType type);
/// Bytes that the backward kernel allocates internally. `dy`: the gradient that it gets for the
/// result `out`.
[[nodiscard]] Affine attention_backward_scratch(AttentionImplementation implementation,
                                                double compute_capability,
                                                const AttentionSizes& sizes, const TensorView& dy,
                                                const TensorView& out);

/// The larger of two sizes: the memory of two storages that are never live at the same time.
[[nodiscard]] Affine larger(Affine a, Affine b);

}  // namespace stowage
