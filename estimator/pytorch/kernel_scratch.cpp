#include "estimator/pytorch/kernel_scratch.hpp"

namespace stowage {

Affine embedding_scratch(const TensorView& indices) {
  return is_contiguous(indices) ? Affine(0) : byte_count(indices);
}

Affine index_put_scratch(Affine positions, const TensorView& values) {
  constexpr std::int64_t arrays = 3;
  const Affine copy = is_contiguous(values) ? Affine(0) : byte_count(values);
  return positions * Affine(arrays * element_size(DataType::int64)) + copy;
}

Affine safe_softmax_scratch(const Shape& scores) {
  return element_count(scores) * Affine(element_size(DataType::boolean));
}

Affine roll_scratch(std::size_t axes, const TensorView& result) {
  return axes < 2 ? Affine(0) : byte_count(result);
}

}  // namespace stowage
