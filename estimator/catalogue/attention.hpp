// Functions that the lowerings of scaled_dot_product_attention share.
//
// PyTorch has four implementations and takes the first that can run the call
// (attention_choice.cpp). Three are single kernels that save q, k, v, the output and one float32
// per row (attention_fused.cpp). The fourth is written in tensor operations and saves the
// probabilities (attention_math.cpp). The fused ones take tensors of four axes, and of three as
// four; tensors of five axes use the fourth. Our executor has its own fused kernels
// (attention_own.cpp). For `implementation: math`, and for three or five axes, it runs products
// around a softmax (attention_products.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "estimator/pytorch/attention.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

inline constexpr std::int64_t attention_softmax_flops = 5;  // per element

/// The operands that the implementation gets, after repeat_kv.
struct AttentionOperands {
  TensorView query, key, value;
  std::optional<TensorView> bias;  ///< additive, in the query's format
  std::vector<StorageId> held;  ///< storages that the caller holds until PyTorch's operator returns
};

/// The implementation that `implementation: auto` means for this call on the card of the step's
/// settings.
[[nodiscard]] AttentionImplementation chosen_attention(const OperatorLowering& lowering);

// PyTorch's fused kernels and its composite implementation, for prepared operands. The backward
// rules return the gradients of the operands; `bias` only if it needs a gradient.
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

/// For our executor: the fourth input as numbers to add to the scores. Where a boolean mask is
/// false the number is so low that the weight becomes 0. Emits the kernels that compute them.
[[nodiscard]] TensorView additive_mask(OperatorLowering& lowering, DataType type);

/// The factor of the scores.
[[nodiscard]] double attention_scale(const OperatorLowering& lowering, std::int64_t features);
/// The probability of dropping a weight in this step: 0 in inference.
[[nodiscard]] double attention_dropout(const OperatorLowering& lowering);

/// Whether the operands have four axes, which fused kernels take, or three.
[[nodiscard]] bool has_fused_shape(const OperatorLowering& lowering);
/// A view of three axes as one of four with one head; others unchanged. PyTorch takes [N, length,
/// features] as one sample of N heads, whose tensors have the same bytes; only the memory-efficient
/// kernel lays out its results differently, with the length outermost.
[[nodiscard]] TensorView with_head_axis(TensorView view);
[[nodiscard]] TensorView without_head_axis(TensorView view);
/// The shape of the scores: the query's, with one column per key.
[[nodiscard]] Shape attention_score_shape(const Shape& query, const Shape& key);

// Attributes of the kernel calls.
[[nodiscard]] Attributes product_attributes(bool transpose_a, bool transpose_b, double alpha);
[[nodiscard]] Attributes softmax_attributes(std::int64_t axis, bool causal);

/// The storages of the operator's inputs, which variables of the caller hold beyond the call.
[[nodiscard]] std::vector<StorageId> input_storages(const OperatorLowering& lowering);

/// Whether the script masks the bias (`causal`), and whether it copies the bias, so that its rows
/// are contiguous when PyTorch chooses its kernel.
[[nodiscard]] bool masks_bias(const OperatorLowering& lowering);
[[nodiscard]] bool copies_bias(const OperatorLowering& lowering);

}  // namespace stowage
