// Conversions between formats, 16-bit ones by their bits. Rounding is to nearest, ties to even, and
// to integers towards zero; float64 goes to a 16-bit format by way of float32, as in PyTorch.
#include <bit>
#include <cstring>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint16_t quiet_nan = 0x7fc0;
  if (value != value) return quiet_nan;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A half has 5 bits of exponent (bias 15) and 10 of fraction. Scaling by a power of two is exact,
// so that the hardware's own arithmetic handles subnormal numbers.
float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t rest = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
  if ((bits & 0x7c00) == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | rest);
  const float magnitude = std::bit_cast<float>(rest) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;                                      // NaN
  if (magnitude >= 0x477ff000) return static_cast<std::uint16_t>(sign | 0x7c00);  // past 65,519.99
  if (magnitude < 0x38800000) {  // subnormal as a half: let an addition align and round it
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000));
  }
  const std::uint32_t rebiased = magnitude - (112U << 23);
  return static_cast<std::uint16_t>(sign | ((rebiased + 0xfff + ((rebiased >> 13) & 1)) >> 13));
}

template <typename T>
T element(const std::byte* data, std::int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void set_element(std::byte* data, std::int64_t i, T value) {
  std::memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

std::int64_t load_integer(const TensorArgument& x, std::int64_t i) {
  switch (x.type) {
    case DataType::int64:
      return element<std::int64_t>(x.data, i);
    case DataType::int32:
      return element<std::int32_t>(x.data, i);
    default:
      return element<std::uint8_t>(x.data, i);
  }
}

double load(const TensorArgument& x, std::int64_t i) {
  switch (x.type) {
    case DataType::float32:
      return element<float>(x.data, i);
    case DataType::float64:
      return element<double>(x.data, i);
    case DataType::float16:
      return from_float16(element<std::uint16_t>(x.data, i));
    case DataType::bfloat16:
      return from_bfloat16(element<std::uint16_t>(x.data, i));
    default:
      return static_cast<double>(load_integer(x, i));
  }
}

void store_integer(const TensorArgument& y, std::int64_t i, std::int64_t value) {
  switch (y.type) {
    case DataType::int64:
      return set_element(y.data, i, value);
    case DataType::int32:
      return set_element(y.data, i, static_cast<std::int32_t>(value));
    case DataType::boolean:
      return set_element(y.data, i, static_cast<std::uint8_t>(value != 0));
    default:
      return set_element(y.data, i, static_cast<std::uint8_t>(value));
  }
}

void store(const TensorArgument& y, std::int64_t i, double value) {
  switch (y.type) {
    case DataType::float32:
      return set_element(y.data, i, static_cast<float>(value));
    case DataType::float64:
      return set_element(y.data, i, value);
    case DataType::float16:
      return set_element(y.data, i, to_float16(static_cast<float>(value)));
    case DataType::bfloat16:
      return set_element(y.data, i, to_bfloat16(static_cast<float>(value)));
    case DataType::boolean:
      return set_element(y.data, i, static_cast<std::uint8_t>(value != 0));
    default:
      return store_integer(y, i, static_cast<std::int64_t>(value));
  }
}

}  // namespace

void cast(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  const TensorArgument &x = call.reads[0], &y = call.writes[0];
  const bool integers = !is_floating_point(x.type) && !is_floating_point(y.type);
  for (std::int64_t i = 0; i < count(x.shape); ++i) {
    if (integers) {
      store_integer(y, i, load_integer(x, i));
    } else {
      store(y, i, load(x, i));
    }
  }
}

}  // namespace stowage::host
