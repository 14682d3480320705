#include "estimator/onnx/onnx_value.hpp"

#include <algorithm>
#include <limits>

namespace stowage {

std::optional<double> OnnxValue::scalar() const {
  if (is_activation() || is_absent() || small_count(type.shape) != 1) return std::nullopt;
  if (reals.size() == 1) return reals[0];
  if (integers.size() == 1 && integers[0].is_constant()) {
    return static_cast<double>(integers[0].constant);
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> OnnxValue::numbers() const {
  const bool is_empty = is_constant() && small_count(type.shape) == 0;
  if (integers.empty() && !is_empty) return std::nullopt;
  std::vector<std::int64_t> all;
  for (const Affine& one : integers) {
    if (!one.is_constant()) return std::nullopt;
    all.push_back(one.constant);
  }
  return all;
}

std::optional<std::int64_t> OnnxValue::integer() const {
  const auto number = scalar();
  if (!number) return std::nullopt;
  if (integers.size() == 1) return integers[0].constant;
  constexpr double range = 9223372036854775808.0;  // 2^63
  if (!(*number >= -range && *number < range)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

OnnxValue constant_value(TensorType type, std::vector<Affine> integers, std::vector<double> reals) {
  return {.kind = OnnxValue::Kind::constant,
          .type = std::move(type),
          .integers = std::move(integers),
          .reals = std::move(reals)};
}

std::optional<std::size_t> small_count(const Shape& shape) {
  std::size_t count = 1;
  bool is_small = true;
  for (const Affine& extent : shape) {
    if (extent == Affine(0)) return 0;
    is_small = is_small && extent.is_constant() && extent.constant > 0 &&
               extent.constant <= static_cast<std::int64_t>(most_kept_numbers);
    if (is_small) count *= static_cast<std::size_t>(extent.constant);
    is_small = is_small && count <= most_kept_numbers;
  }
  if (!is_small) return std::nullopt;
  return count;
}

bool is_known(const OnnxValue& value) {
  const auto count = small_count(value.type.shape);
  return count && (value.integers.size() == *count || value.reals.size() == *count);
}

void drop_excess_numbers(OnnxValue& value) {
  if (value.integers.empty() && value.reals.empty()) return;
  const auto count = small_count(value.type.shape);
  if (!count || value.integers.size() != *count) value.integers.clear();
  if (!count || value.reals.size() != *count) value.reals.clear();
}

bool FoldingBudget::take(std::size_t count) {
  if (count > left_) {
    left_ = 0;
    return false;
  }
  left_ -= count;
  return true;
}

std::optional<DataType> data_type_of(int onnx_type) {
  if (onnx_type < 0 || onnx_type > std::numeric_limits<std::uint8_t>::max()) return std::nullopt;
  switch (static_cast<OnnxType>(onnx_type)) {
    case OnnxType::float32:
    case OnnxType::float64:
    case OnnxType::float16:
    case OnnxType::bfloat16:
      return DataType::float32;  // the model's own format, which its precision says
    case OnnxType::uint8:
    case OnnxType::int8:
      return DataType::uint8;
    case OnnxType::int32:
    case OnnxType::uint32:
      return DataType::int32;
    case OnnxType::int64:
    case OnnxType::uint64:
      return DataType::int64;
    case OnnxType::boolean:
      return DataType::boolean;
    default:
      return std::nullopt;
  }
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank, Affine(1));
  for (std::size_t i = 0; i < rank; ++i) {
    const Affine x = i < a.size() ? a[a.size() - 1 - i] : Affine(1);
    const Affine y = i < b.size() ? b[b.size() - 1 - i] : Affine(1);
    if (x != y && x != Affine(1) && y != Affine(1)) return std::nullopt;
    result[rank - 1 - i] = x == Affine(1) ? y : x;
  }
  return result;
}

std::optional<Shape> reshaped(const Shape& from, const std::vector<Affine>& wanted,
                              bool allow_zero) {
  if (wanted.size() > most_onnx_axes) return std::nullopt;
  Shape shape;
  Affine product = 1;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Affine extent = wanted[i];
    if (extent == Affine(0) && !allow_zero) {
      if (i >= from.size()) return std::nullopt;
      extent = from[i];
    }
    if (extent == Affine(-1)) {
      if (rest) return std::nullopt;
      rest = i;
    } else {
      if (extent.slope < 0 || (extent.is_constant() && extent.constant < 0)) return std::nullopt;
      product = product * extent;
    }
    shape.push_back(extent);
  }
  const Affine elements = element_count(from);
  if (rest) {
    if (product == Affine(0) || !divides(product, elements)) return std::nullopt;
    shape[*rest] = quotient(elements, product);
  } else if (product != elements) {
    return std::nullopt;
  }
  return shape;
}

}  // namespace stowage
