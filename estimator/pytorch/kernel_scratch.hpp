// The memory that single PyTorch kernels allocate internally: kernels of indices, sort, softmax and
// roll. Source: ATen/native/cuda of PyTorch 2.15.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Embedding.cu, embedding_dense_backward: the kernel first sorts the indices, which needs arrays
/// of their size and type. (Up to 3,072 indices are not sorted; this is not modelled, and the error
/// is at most 48 KiB.)
inline constexpr std::array<std::string_view, 2> embedding_gradient_arrays{"sorted_indices",
                                                                           "original_indices"};

/// Embedding.cpp: indices that are not contiguous are copied to a flat tensor for index_select.
[[nodiscard]] Affine embedding_scratch(const TensorView& indices);

/// cub::DeviceRadixSort::SortPairs, which may not write over its arguments (CCCL 3.5, as in the
/// wheels: dispatch_radix_sort.cuh, invoke_onesweep; tuning_radix_sort.cuh of compute capability 8,
/// whose tiles are the smallest): counters of digits a tile, and where `key_bits` take more than
/// one pass of 8, copies of keys and values. Up to 2,304 pairs are sorted in shared memory; for a
/// count that depends on the batch this is not modelled (at most 44 KiB too much).
[[nodiscard]] Affine sort_pairs_scratch(Affine pairs, std::int64_t key_size,
                                        std::int64_t value_size, std::int64_t key_bits);

/// Indexing.cu, index_put_with_sort_kernel (index_put_ with accumulation): four int64 arrays of the
/// indexed `positions` (linear indices, their range, both sorted), what the sort takes, and the
/// values made contiguous. `places`: the number of positions that indices can address, including
/// the axes before them (largestIndex / sliceSize); it decides how many bits are sorted.
[[nodiscard]] Affine index_put_scratch(Affine positions, Affine places, const TensorView& values);

/// Sort.cpp, sort_cuda_kernel: up to 4,096 elements are sorted in place, with one array of their
/// positions. Above (SortStable.cu) fewer than 128 lines are sorted at once, by value and then by
/// line (segmented_sort_pairs_by_full_sort), more line by line (segmented_sort_pairs), and an axis
/// that is not innermost is copied before and after. Lines are counted at a batch of 1.
[[nodiscard]] Affine sort_scratch(const TensorView& x, std::size_t axis);

/// _safe_softmax finds rows that are all minus infinity: one byte per score.
[[nodiscard]] Affine safe_softmax_scratch(const Shape& scores);

/// SoftMax.cu, softmax_backward_cuda_out: the kernel reads the product of the gradient and the
/// softmax's result, a tensor of its own (`Tensor tmp = grad * output`; the wheels of 2.15 call
/// mul_Tensor there too). log_softmax's backward makes none.
[[nodiscard]] Affine softmax_backward_scratch(const TensorView& result);
inline constexpr std::string_view softmax_product = "grad_times_result";  ///< that tensor's name
/// That tensor, for the operator's call of softmax_backward.
[[nodiscard]] StorageId new_softmax_product(OperatorLowering& lowering, const TensorView& result);

/// TensorTransformations.cu, roll_cuda: rolls one axis at a time, so that with several axes there
/// is an intermediate tensor.
[[nodiscard]] Affine roll_scratch(std::size_t axes, const TensorView& result);

}  // namespace stowage
