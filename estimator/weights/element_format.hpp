// ElementFormat: the element formats of weight files, and the size of a block of elements in bytes.
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

/// The format of a safetensors dtype, "BF16"; nullopt: unknown.
[[nodiscard]] std::optional<ElementFormat> safetensors_format(std::string_view word);
/// The format of a ggml_type number (ggml.h); nullopt: unknown.
[[nodiscard]] std::optional<ElementFormat> ggml_format(std::uint32_t number);
/// The bytes of a tensor; nullopt: its elements are not whole blocks, or exceed 64 bits.
[[nodiscard]] std::optional<std::int64_t> stored_bytes(const ElementFormat& format,
                                                       std::int64_t elements);

}  // namespace stowage
