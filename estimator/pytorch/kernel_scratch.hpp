// What single kernels of PyTorch's allocate within themselves: of indices, and of softmax and roll.
// Sources: ATen/native/cuda of PyTorch 2.15.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Embedding.cu, embedding_dense_backward: the kernel sorts the indices first, which takes arrays
/// of their size and type (it skips this for up to 3,072 indices, which is not modelled: at most
/// 48 KiB).
inline constexpr std::array<std::string_view, 2> embedding_gradient_arrays{"sorted_indices",
                                                                           "original_indices"};

/// Embedding.cpp: indices that do not lie contiguously are flattened for index_select.
[[nodiscard]] Affine embedding_scratch(const TensorView& indices);

/// Indexing.cu, index_put_ with accumulation: three int64 arrays of the indexed positions (linear,
/// sorted and original indices), and the values made contiguous.
[[nodiscard]] Affine index_put_scratch(Affine positions, const TensorView& values);

/// _safe_softmax looks for rows that are minus infinity throughout: a byte for each score.
[[nodiscard]] Affine safe_softmax_scratch(const Shape& scores);

/// TensorTransformations.cu, roll_cuda: one axis at a time, so that with several a tensor lives on
/// the way.
[[nodiscard]] Affine roll_scratch(std::size_t axes, const TensorView& result);

}  // namespace stowage
