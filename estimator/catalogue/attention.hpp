// scaled_dot_product_attention: what its lowerings share.
//
// PyTorch has four implementations of it and takes the first that can run the call
// (attention_choice.cpp). Three are single kernels that keep q, k, v, the output and one float32 a
// row (attention_fused.cpp); the fourth is written in tensor operations and keeps the
// probabilities (attention_math.cpp). The fused ones take four axes, or three as four; five go to
// the fourth. Our executor has fused kernels of its own (attention_own.cpp), and for
// `implementation: math`, and where there are three or five axes, runs products around a softmax
// (attention_products.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "estimator/pytorch/attention.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

inline constexpr std::int64_t attention_softmax_flops = 5;  // an element

/// The operands as the implementation gets them, after repeat_kv.
struct AttentionOperands {
  TensorView query, key, value;
  std::optional<TensorView> bias;  ///< additive, in the query's format
  std::vector<StorageId> held;     ///< what the caller holds until PyTorch's operator returns
};

/// What `implementation: auto` means for this call on the card of the step's settings.
[[nodiscard]] AttentionImplementation chosen_attention(const OperatorLowering& lowering);

// PyTorch's fused kernels and its composite, over operands made ready. `give` of the backward
// rules: gradients of the operands, in the same order; `bias` only where it wants one.
void forward_fused_attention(OperatorLowering& lowering, AttentionImplementation implementation,
                             const AttentionOperands& operands);
[[nodiscard]] AttentionOperands backward_fused_attention(OperatorLowering& lowering,
                                                         AttentionImplementation implementation);
void forward_math_attention(OperatorLowering& lowering, const AttentionOperands& operands);
[[nodiscard]] AttentionOperands backward_math_attention(OperatorLowering& lowering);

// Our executor's rules.
void forward_attention_own(OperatorLowering& lowering);
void backward_attention_own(OperatorLowering& lowering);
void forward_attention_products(OperatorLowering& lowering);
void backward_attention_products(OperatorLowering& lowering);

/// The fourth input as numbers to add to the scores, for our executor: what a boolean mask leaves
/// out gets so low a score that its weight is 0. Emits what makes them.
[[nodiscard]] TensorView additive_mask(OperatorLowering& lowering, DataType type);

/// The factor of the scores.
[[nodiscard]] double attention_scale(const OperatorLowering& lowering, std::int64_t features);
/// The probability of dropping a weight in this step: 0 in inference.
[[nodiscard]] double attention_dropout(const OperatorLowering& lowering);

/// Whether the call has the four axes that fused kernels take, or three.
[[nodiscard]] bool has_fused_shape(const OperatorLowering& lowering);
/// Three axes as four, with one head; others as they are. PyTorch takes [N, length, features] for
/// one sample of N heads, whose tensors have the same bytes; only the memory-efficient kernel lays
/// its results otherwise, the length outermost.
[[nodiscard]] TensorView with_head_axis(TensorView view);
[[nodiscard]] TensorView without_head_axis(TensorView view);
/// The shape of the scores: the query's, with a column for each key.
[[nodiscard]] Shape attention_score_shape(const Shape& query, const Shape& key);

// Attributes of the kernel calls.
[[nodiscard]] Attributes product_attributes(bool transpose_a, bool transpose_b, double alpha);
[[nodiscard]] Attributes softmax_attributes(std::int64_t axis, bool causal);

/// The operator's inputs: variables of whoever calls it, so that they outlive the call.
[[nodiscard]] std::vector<StorageId> input_storages(const OperatorLowering& lowering);

/// The bias is masked by the script (`causal`), and whether it is copied, so that its rows are
/// contiguous when PyTorch chooses its kernel.
[[nodiscard]] bool masks_bias(const OperatorLowering& lowering);
[[nodiscard]] bool copies_bias(const OperatorLowering& lowering);

}  // namespace stowage
