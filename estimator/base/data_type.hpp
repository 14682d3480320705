// The element types of tensors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stowage {

enum class DataType : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int64,
  int32,
  uint8,
  boolean
};
inline constexpr std::array all_data_types{DataType::float32,  DataType::float64, DataType::float16,
                                           DataType::bfloat16, DataType::int64,   DataType::int32,
                                           DataType::uint8,    DataType::boolean};

[[nodiscard]] std::int64_t element_size(DataType type);   ///< bytes an element
[[nodiscard]] std::string_view to_string(DataType type);  ///< "float32", ...
[[nodiscard]] std::optional<DataType> parse_data_type(std::string_view text);
[[nodiscard]] bool is_floating_point(DataType type);

}  // namespace stowage
