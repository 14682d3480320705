#include "estimator/onnx/onnx_value.hpp"

#include <algorithm>

namespace stowage {

std::optional<double> OnnxValue::scalar() const {
  if (is_activation() || is_absent() || element_count(type.shape) != Affine(1)) return std::nullopt;
  if (reals.size() == 1) return reals[0];
  if (integers.size() == 1 && integers[0].is_constant()) {
    return static_cast<double>(integers[0].constant);
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> OnnxValue::numbers() const {
  const bool is_empty = is_constant() && element_count(type.shape) == Affine(0);
  if (integers.empty() && !is_empty) return std::nullopt;
  std::vector<std::int64_t> all;
  for (const Affine& one : integers) {
    if (!one.is_constant()) return std::nullopt;
    all.push_back(one.constant);
  }
  return all;
}

OnnxValue constant_value(TensorType type, std::vector<Affine> integers, std::vector<double> reals) {
  return {.kind = OnnxValue::Kind::constant,
          .type = std::move(type),
          .integers = std::move(integers),
          .reals = std::move(reals)};
}

std::optional<std::size_t> small_count(const Shape& shape) {
  const Affine count = element_count(shape);
  if (!count.is_constant() || count.constant < 0 ||
      count.constant > static_cast<std::int64_t>(most_kept_numbers)) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(count.constant);
}

bool is_known(const OnnxValue& value) {
  const auto count = small_count(value.type.shape);
  return count && (value.integers.size() == *count || value.reals.size() == *count);
}

std::optional<DataType> data_type_of(int onnx_type) {
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

std::optional<std::size_t> axis_in(std::int64_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

std::optional<std::vector<std::int64_t>> axes_of(const OnnxNode& node,
                                                 const std::vector<const OnnxValue*>& inputs,
                                                 std::size_t input) {
  if (const OnnxAttribute* axes = node.find("axes")) return axes->integers;
  if (input >= inputs.size() || inputs[input]->is_absent()) return std::vector<std::int64_t>();
  return inputs[input]->numbers();
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
