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

/// cub::DeviceRadixSort::SortPairs, which may not write over its arguments (CCCL 3.5, as in the
/// wheels: dispatch_radix_sort.cuh, invoke_onesweep; tuning_radix_sort.cuh of compute capability 8,
/// whose tiles are the smallest): counters of digits a tile, and where `key_bits` take more than
/// one pass of 8, copies of keys and values. Up to 2,304 pairs are sorted in shared memory; of a
/// count that grows with the batch this is not taken into account (at most 44 KiB too many).
[[nodiscard]] Affine sort_pairs_scratch(Affine pairs, std::int64_t key_size,
                                        std::int64_t value_size, std::int64_t key_bits);

/// Indexing.cu, index_put_with_sort_kernel (index_put_ with accumulation): four int64 arrays of the
/// indexed `positions` (linear indices, their range, both sorted), what the sort takes, and the
/// values made contiguous. `places`: all that the indices could name, the axes before them included
/// (largestIndex / sliceSize); their number decides how many bits are sorted.
[[nodiscard]] Affine index_put_scratch(Affine positions, Affine places, const TensorView& values);

/// Sort.cpp, sort_cuda_kernel: up to 4,096 elements are sorted in place, beside a range of their
/// places. Above (SortStable.cu) fewer than 128 lines are sorted at once, by value and then by line
/// (segmented_sort_pairs_by_full_sort), more line by line (segmented_sort_pairs), and an axis that
/// is not innermost is copied to and fro. Lines are counted at a batch of 1.
[[nodiscard]] Affine sort_scratch(const TensorView& x, std::size_t axis);

/// _safe_softmax looks for rows that are minus infinity throughout: a byte for each score.
[[nodiscard]] Affine safe_softmax_scratch(const Shape& scores);

/// TensorTransformations.cu, roll_cuda: one axis at a time, so that with several a tensor lives on
/// the way.
[[nodiscard]] Affine roll_scratch(std::size_t axes, const TensorView& result);

}  // namespace stowage
