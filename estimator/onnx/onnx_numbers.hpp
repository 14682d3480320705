// Numbers as an ONNX tensor has them: bits of an element type.
#pragma once

#include <cstdint>

namespace stowage {

// `type` is a number of OnnxType; a file may have others.
[[nodiscard]] int onnx_bytes_of(int type);  ///< 0: of no type that is read
[[nodiscard]] bool is_onnx_real(int type);
[[nodiscard]] double onnx_real_of(std::uint64_t bits, int type);
[[nodiscard]] std::int64_t onnx_integer_of(std::uint64_t bits, int type);

}  // namespace stowage
