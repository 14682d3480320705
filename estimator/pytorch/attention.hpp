// PyTorch's fused attention: how much the three kernels compute, and what they allocate within
// themselves.
//
// Sources, PyTorch 2.15: ATen/native/transformers/cuda/flash_attn/flash_api.cpp mha_bwd,
// cuda/attention_backward.cu and cuda/mem_eff_attention/kernel_backward.h (workspace_size and the
// list of kernels in cutlassB.h), cudnn/MHA.cpp. cuDNN's own workspace is asked of a
// WorkspaceSource (workspace/attention_workspace.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

enum class AttentionImplementation { flash, efficient, math, cudnn };
/// As the attribute `implementation` says it.
[[nodiscard]] std::string_view to_string(AttentionImplementation implementation);

/// The sizes of a call; the query is [batch, heads, queries, features]. With five axes what stands
/// before the last three is the batch; with three there is one head.
struct AttentionSizes {
  Affine batch;
  std::int64_t heads = 0;
  std::int64_t groups = 1;  ///< query heads that share a key and a value head
  std::int64_t queries = 0, keys = 0;
  std::int64_t features = 0, value_features = 0;
};
/// Precondition: three axes or more, as many each, of which only the first depends on the batch; at
/// least one head.
[[nodiscard]] AttentionSizes attention_sizes(const Shape& query, const Shape& key,
                                             const Shape& value);

/// Of one of the two products over all heads, whose other inner size is `features`.
[[nodiscard]] Affine attention_product_flops(const AttentionSizes& sizes, std::int64_t features);
/// Of the fused kernels: two products forward, five backward.
[[nodiscard]] Affine fused_attention_flops(const AttentionSizes& sizes);
[[nodiscard]] Affine fused_attention_backward_flops(const AttentionSizes& sizes);

/// Bytes within the forward kernel.
[[nodiscard]] Affine attention_scratch(AttentionImplementation implementation,
                                       const AttentionSizes& sizes, DataType type);
/// Bytes within the backward kernel, of which the gradient `dy` arrives for the result `out`.
[[nodiscard]] Affine attention_backward_scratch(AttentionImplementation implementation,
                                                double compute_capability,
                                                const AttentionSizes& sizes, const TensorView& dy,
                                                const TensorView& out);

/// Two storages that never live at once take the room of the larger.
[[nodiscard]] Affine larger(Affine a, Affine b);

}  // namespace stowage
