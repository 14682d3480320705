// Conversion of an ONNX tensor's elements from bits of their type to numbers.
#pragma once

#include <cstdint>

namespace stowage {

// `type`: a value of OnnxType; a file may contain others.
[[nodiscard]] int onnx_bytes_of(int type);  ///< 0: an unsupported type
[[nodiscard]] bool is_onnx_real(int type);
[[nodiscard]] double onnx_real_of(std::uint64_t bits, int type);
[[nodiscard]] std::int64_t onnx_integer_of(std::uint64_t bits, int type);

}  // namespace stowage
