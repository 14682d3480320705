#include "estimator/pytorch/kernel_scratch.hpp"

#include <algorithm>
#include <bit>

namespace stowage {

Affine embedding_scratch(const TensorView& indices) {
  return is_contiguous(indices) ? Affine(0) : byte_count(indices);
}

Affine sort_pairs_scratch(Affine pairs, std::int64_t key_size, std::int64_t value_size,
                          std::int64_t key_bits) {
  constexpr std::int64_t one_tile = 2'304, tile = 3'840;  // 256 x 9, 384 x 10
  constexpr std::int64_t bits = 8, digits = 1 << bits, counter = 4, alignment = 256;
  if (pairs.is_constant() && pairs.constant <= one_tile) return 1;
  const std::int64_t passes = (key_bits + bits - 1) / bits;
  const auto tiles = [](std::int64_t count) { return (count + tile - 1) / tile; };
  Affine bytes(passes * digits * counter + alignment);  // starts of the digits, tickets
  bytes = bytes + Affine(tiles(pairs.constant), tiles(pairs.slope)) * Affine(digits * counter);
  return passes > 1 ? bytes + pairs * Affine(key_size + value_size) : bytes;
}

Affine index_put_scratch(Affine positions, Affine places, const TensorView& values) {
  constexpr std::int64_t arrays = 4, size = 8;  // int64
  const auto last = static_cast<std::uint64_t>(std::max<std::int64_t>(places.constant, 2) - 1);
  const std::int64_t bits =
      places.is_constant() ? static_cast<std::int64_t>(std::bit_width(last)) : std::int64_t{32};
  const Affine copy = is_contiguous(values) ? Affine(0) : byte_count(values);
  return positions * Affine(arrays * size) + sort_pairs_scratch(positions, size, size, bits) + copy;
}

Affine sort_scratch(const TensorView& x, std::size_t axis) {
  constexpr std::int64_t small = 4'096, few_lines = 128, place = 8;
  const std::int64_t line = x.shape[axis].constant;
  if (line <= small) return line * place;
  const std::int64_t size = element_size(x.type);
  const Affine count = element_count(x.shape);
  const std::int64_t lines = (count.constant + count.slope) / line;
  Affine bytes = count * Affine(place) + sort_pairs_scratch(count, size, place, size * 8);
  if (lines > 1 && lines < few_lines) bytes = bytes + count * Affine(place + size);
  if (x.strides[axis] != Affine(1)) bytes = bytes + count * Affine(2 * size + place);
  return bytes;
}

Affine safe_softmax_scratch(const Shape& scores) {
  return element_count(scores) * Affine(element_size(DataType::boolean));
}

Affine softmax_backward_scratch(const TensorView& result) { return byte_count(result); }

StorageId new_softmax_product(OperatorLowering& lowering, const TensorView& result) {
  return lowering.new_tensor(softmax_product, result.shape, result.type, StorageClass::workspace)
      .storage;
}

Affine roll_scratch(std::size_t axes, const TensorView& result) {
  return axes < 2 ? Affine(0) : byte_count(result);
}

}  // namespace stowage
