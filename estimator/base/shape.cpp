#include "estimator/base/shape.hpp"

namespace stowage {

// Out of line: a tensor's views are copied in very many places.
Shape::Shape(const Shape& other) = default;
Shape& Shape::operator=(const Shape& other) = default;
Shape::~Shape() = default;

std::size_t ShapeHash::operator()(const Shape& shape) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  std::uint64_t hash = shape.size();
  for (const Affine& dimension : shape) {
    hash = (hash ^ static_cast<std::uint64_t>(dimension.constant)) * odd;
    hash = (hash ^ static_cast<std::uint64_t>(dimension.slope) ^ hash >> 32) * odd;
  }
  return hash ^ hash >> 32;
}

Affine element_count(const Shape& shape) {
  Affine count = 1;
  for (const Affine& dimension : shape) count = count * dimension;
  return count;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  Affine stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    if (i > 0) stride = stride * shape[i];
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Affine& dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += dimension.to_string();
  }
  return text + "]";
}

std::vector<std::int64_t> at_batch(const Shape& shape, std::int64_t batch) {
  std::vector<std::int64_t> result;
  result.reserve(shape.size());
  for (const Affine& dimension : shape) result.push_back(dimension.at(batch));
  return result;
}

}  // namespace stowage
