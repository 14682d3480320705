#include "estimator/onnx/onnx_numbers.hpp"

#include <bit>
#include <cmath>

#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

namespace {

double half_value(std::uint16_t bits) {  // IEEE 754 binary16
  const int exponent = (bits >> 10U) & 0x1f;
  const int fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent == 0x1f) return sign * (fraction == 0 ? HUGE_VAL : std::nan(""));
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

}  // namespace

int onnx_bytes_of(int type) {
  switch (static_cast<OnnxType>(type)) {
    case OnnxType::uint8:
    case OnnxType::int8:
    case OnnxType::boolean:
      return 1;
    case OnnxType::uint16:
    case OnnxType::int16:
    case OnnxType::float16:
    case OnnxType::bfloat16:
      return 2;
    case OnnxType::float32:
    case OnnxType::int32:
    case OnnxType::uint32:
      return 4;
    case OnnxType::int64:
    case OnnxType::uint64:
    case OnnxType::float64:
      return 8;
    default:
      return 0;
  }
}

bool is_onnx_real(int type) {
  const auto known = static_cast<OnnxType>(type);
  return known == OnnxType::float32 || known == OnnxType::float64 || known == OnnxType::float16 ||
         known == OnnxType::bfloat16;
}

double onnx_real_of(std::uint64_t bits, int type) {
  switch (static_cast<OnnxType>(type)) {
    case OnnxType::float64:
      return std::bit_cast<double>(bits);
    case OnnxType::float16:
      return half_value(static_cast<std::uint16_t>(bits));
    case OnnxType::bfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16U));
    default:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  }
}

std::int64_t onnx_integer_of(std::uint64_t bits, int type) {
  switch (static_cast<OnnxType>(type)) {
    case OnnxType::int8:
      return static_cast<std::int8_t>(bits);
    case OnnxType::int16:
      return static_cast<std::int16_t>(bits);
    case OnnxType::int32:
      return static_cast<std::int32_t>(bits);
    default:
      return static_cast<std::int64_t>(bits);
  }
}

}  // namespace stowage
