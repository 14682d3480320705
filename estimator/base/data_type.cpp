#include "estimator/base/data_type.hpp"

#include <array>

namespace stowage {

namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  std::int64_t size;
  bool floating;
};
constexpr std::array<TypeRow, 8> types{{{DataType::float32, "float32", 4, true},
                                        {DataType::float64, "float64", 8, true},
                                        {DataType::float16, "float16", 2, true},
                                        {DataType::bfloat16, "bfloat16", 2, true},
                                        {DataType::int64, "int64", 8, false},
                                        {DataType::int32, "int32", 4, false},
                                        {DataType::uint8, "uint8", 1, false},
                                        {DataType::boolean, "bool", 1, false}}};

const TypeRow& row(DataType type) { return types[static_cast<std::size_t>(type)]; }

}  // namespace

std::int64_t element_size(DataType type) { return row(type).size; }
std::string_view to_string(DataType type) { return row(type).name; }
bool is_floating_point(DataType type) { return row(type).floating; }

std::optional<DataType> parse_data_type(std::string_view text) {
  for (const TypeRow& candidate : types) {
    if (candidate.name == text) return candidate.type;
  }
  return std::nullopt;
}

}  // namespace stowage
