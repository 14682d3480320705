// Files of weights in the tests' own words: headers of safetensors and GGUF, data of zeros.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stowage::testing {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

inline std::string safetensors_file(const std::string& header, std::size_t data) {
  return little_endian(header.size(), 8) + header + std::string(data, '\0');
}

/// Of 16 bytes of data.
inline constexpr std::string_view two_stored_tensors =
    R"({"__metadata__": {"format": "pt"}, "a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, "b": {"dtype": "F32", "shape": [], "data_offsets": [12, 16]}})";

inline std::string gguf_text(const std::string& text) {
  return little_endian(text.size(), 8) + text;
}

/// Two tensors of F32 and Q4_0 (104 bytes of data), an array of words, at an alignment of 32.
inline std::string gguf_file(std::size_t data) {
  std::string file = "GGUF" + little_endian(3, 4) + little_endian(2, 8) + little_endian(1, 8);
  file += gguf_text("tokens") + little_endian(9, 4) + little_endian(8, 4) + little_endian(2, 8) +
          gguf_text("a") + gguf_text("bc");
  file += gguf_text("norm") + little_endian(1, 4) + little_endian(8, 8) + little_endian(0, 4) +
          little_endian(0, 8);
  file += gguf_text("up") + little_endian(2, 4) + little_endian(64, 8) + little_endian(2, 8) +
          little_endian(2, 4) + little_endian(32, 8);
  file.resize((file.size() + 31) / 32 * 32);
  return file + std::string(data, '\0');
}

}  // namespace stowage::testing
