// The element formats of weight files and their sizes: blocks of `elements` in `bytes`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stowage {

struct ElementFormat {
  std::string_view name;
  std::int64_t elements = 1;
  std::int64_t bytes = 1;
};

/// safetensors' dtype words ("BF16"); nullopt: unknown.
[[nodiscard]] std::optional<ElementFormat> safetensors_format(std::string_view word);
/// ggml_type, by number (ggml.h); nullopt: unknown.
[[nodiscard]] std::optional<ElementFormat> ggml_format(std::uint32_t number);
/// Bytes of a tensor; nullopt: its elements do not divide into blocks, or leave 64 bits.
[[nodiscard]] std::optional<std::int64_t> stored_bytes(const ElementFormat& format,
                                                       std::int64_t elements);

}  // namespace stowage
