#include "gpu_probe/kernels/rows/arguments.hpp"

#include <fmt/ranges.h>

namespace stowage::kernels {

std::string shape_text(const Sizes& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::int64_t count(const Sizes& shape) { return count(shape, 0, shape.size()); }

std::int64_t count(const Sizes& shape, std::size_t from, std::size_t to) {
  std::int64_t product = 1;
  for (std::size_t i = from; i < to; ++i) product *= shape[i];
  return product;
}

Sizes row_major_strides(const Sizes& shape) {
  Sizes strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

void require_writes(const KernelCall& call, std::size_t writes) {
  require(call.writes.size() == writes, "writes {} tensors instead of {}", call.writes.size(),
          writes);
}

void require_shape(std::string_view what, const TensorArgument& argument, const Sizes& expected) {
  require(argument.shape == expected, "{} is {} where {} is needed", what,
          shape_text(argument.shape), shape_text(expected));
}

void require_same_shape(std::string_view what, const TensorArgument& a, const TensorArgument& b) {
  require_shape(what, a, b.shape);
}

namespace {

void require_type(const TensorArgument& argument, bool holds, std::string_view wanted) {
  require(holds, "a tensor is {} where {} is needed", to_string(argument.type), wanted);
  require(argument.data != nullptr || count(argument.shape) == 0, "a tensor {} has no address",
          shape_text(argument.shape));
}

using body::FloatFormat;

bool is_mask(DataType type) { return type == DataType::uint8 || type == DataType::boolean; }

}  // namespace

void require_type(const TensorArgument& argument, DataType type) {
  require_type(argument, argument.type == type, to_string(type));
}

body::Floats any_floats(const TensorArgument& argument) {
  require_type(argument, is_floating_point(argument.type), "a floating-point format");
  const FloatFormat format = argument.type == DataType::float32   ? FloatFormat::float32
                             : argument.type == DataType::float64 ? FloatFormat::float64
                             : argument.type == DataType::float16 ? FloatFormat::float16
                                                                  : FloatFormat::bfloat16;
  return {argument.data, format};
}

float* mutable_floats(const TensorArgument& argument) {
  require_type(argument, argument.type == DataType::float32, "float32");
  return reinterpret_cast<float*>(argument.data);
}
const float* floats(const TensorArgument& argument) { return mutable_floats(argument); }

std::int64_t* mutable_integers(const TensorArgument& argument) {
  require_type(argument, argument.type == DataType::int64, "int64");
  return reinterpret_cast<std::int64_t*>(argument.data);
}
const std::int64_t* integers(const TensorArgument& argument) { return mutable_integers(argument); }

std::uint8_t* mutable_mask_bytes(const TensorArgument& argument) {
  require_type(argument, is_mask(argument.type), "uint8 or boolean");
  return reinterpret_cast<std::uint8_t*>(argument.data);
}
const std::uint8_t* mask_bytes(const TensorArgument& argument) {
  return mutable_mask_bytes(argument);
}

namespace {

/// Null: the call has no such attribute.
const AttributeValue* find(const KernelCall& call, std::string_view name) {
  if (call.attributes == nullptr) return nullptr;
  for (const auto& [existing, value] : call.attributes->entries()) {
    if (existing == name) return &value;
  }
  return nullptr;
}

const AttributeValue& found(const KernelCall& call, std::string_view name) {
  const AttributeValue* value = find(call, name);
  require(value != nullptr, "attribute '{}' is missing", name);
  return *value;
}

}  // namespace

bool has(const KernelCall& call, std::string_view name) { return find(call, name) != nullptr; }

std::int64_t integer(const KernelCall& call, std::string_view name) {
  const auto* number = std::get_if<std::int64_t>(&found(call, name));
  require(number != nullptr, "attribute '{}' is not a whole number", name);
  return *number;
}

std::int64_t integer(const KernelCall& call, std::string_view name, std::int64_t otherwise) {
  return has(call, name) ? integer(call, name) : otherwise;
}

double real(const KernelCall& call, std::string_view name) {
  const AttributeValue& value = found(call, name);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  const auto* number = std::get_if<double>(&value);
  require(number != nullptr, "attribute '{}' is not a number", name);
  return *number;
}

double real(const KernelCall& call, std::string_view name, double otherwise) {
  return has(call, name) ? real(call, name) : otherwise;
}

bool boolean(const KernelCall& call, std::string_view name, bool otherwise) {
  if (!has(call, name)) return otherwise;
  const auto* value = std::get_if<bool>(&found(call, name));
  require(value != nullptr, "attribute '{}' is not true or false", name);
  return *value;
}

std::string text(const KernelCall& call, std::string_view name, std::string_view otherwise) {
  if (!has(call, name)) return std::string(otherwise);
  const auto* value = std::get_if<std::string>(&found(call, name));
  require(value != nullptr, "attribute '{}' is not a word", name);
  return *value;
}

Sizes list(const KernelCall& call, std::string_view name) {
  const AttributeValue& value = found(call, name);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return {*number};
  const auto* numbers = std::get_if<Sizes>(&value);
  require(numbers != nullptr, "attribute '{}' is not a list of whole numbers", name);
  return *numbers;
}

Sizes list(const KernelCall& call, std::string_view name, std::size_t length,
           std::int64_t otherwise) {
  if (!has(call, name)) return Sizes(length, otherwise);
  Sizes numbers = list(call, name);
  if (numbers.size() == 1) return Sizes(length, numbers.front());
  require(numbers.size() == length, "attribute '{}' has {} numbers instead of {}", name,
          numbers.size(), length);
  return numbers;
}

std::size_t axis_of(const KernelCall& call, std::string_view name, std::size_t rank,
                    std::int64_t otherwise) {
  std::int64_t axis = integer(call, name, otherwise);
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  require(axis >= 0 && axis < static_cast<std::int64_t>(rank),
          "attribute '{}' is {} for a tensor of rank {}", name, axis, rank);
  return static_cast<std::size_t>(axis);
}

}  // namespace stowage::kernels
