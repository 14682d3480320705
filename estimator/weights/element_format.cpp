#include "estimator/weights/element_format.hpp"

#include <array>
#include <limits>

namespace stowage {

namespace {

constexpr std::array<ElementFormat, 20> safetensors_formats{{
    {"BOOL"},      {"U8"},        {"I8"},        {"F8_E5M2"},       {"F8_E4M3"},
    {"F8_E8M0"},   {"I16", 1, 2}, {"U16", 1, 2}, {"F16", 1, 2},     {"BF16", 1, 2},
    {"I32", 1, 4}, {"U32", 1, 4}, {"F32", 1, 4}, {"I64", 1, 8},     {"U64", 1, 8},
    {"F64", 1, 8}, {"C64", 1, 8}, {"F4", 2, 1},  {"F6_E2M3", 4, 3}, {"F6_E3M2", 4, 3},
}};

struct NumberedFormat {
  std::uint32_t number;
  ElementFormat format;
};

// Blocks of 32 or 256 elements; 4, 5, 31 to 33 and 36 to 38 were taken out of ggml.
constexpr std::array<NumberedFormat, 32> ggml_formats{{
    {0, {"F32", 1, 4}},
    {1, {"F16", 1, 2}},
    {2, {"Q4_0", 32, 18}},
    {3, {"Q4_1", 32, 20}},
    {6, {"Q5_0", 32, 22}},
    {7, {"Q5_1", 32, 24}},
    {8, {"Q8_0", 32, 34}},
    {9, {"Q8_1", 32, 36}},
    {10, {"Q2_K", 256, 84}},
    {11, {"Q3_K", 256, 110}},
    {12, {"Q4_K", 256, 144}},
    {13, {"Q5_K", 256, 176}},
    {14, {"Q6_K", 256, 210}},
    {15, {"Q8_K", 256, 292}},
    {16, {"IQ2_XXS", 256, 66}},
    {17, {"IQ2_XS", 256, 74}},
    {18, {"IQ3_XXS", 256, 98}},
    {19, {"IQ1_S", 256, 50}},
    {20, {"IQ4_NL", 32, 18}},
    {21, {"IQ3_S", 256, 110}},
    {22, {"IQ2_S", 256, 82}},
    {23, {"IQ4_XS", 256, 136}},
    {24, {"I8"}},
    {25, {"I16", 1, 2}},
    {26, {"I32", 1, 4}},
    {27, {"I64", 1, 8}},
    {28, {"F64", 1, 8}},
    {29, {"IQ1_M", 256, 56}},
    {30, {"BF16", 1, 2}},
    {34, {"TQ1_0", 256, 54}},
    {35, {"TQ2_0", 256, 66}},
    {39, {"MXFP4", 32, 17}},
}};

}  // namespace

std::optional<ElementFormat> safetensors_format(std::string_view word) {
  for (const ElementFormat& format : safetensors_formats) {
    if (format.name == word) return format;
  }
  return std::nullopt;
}

std::optional<ElementFormat> ggml_format(std::uint32_t number) {
  for (const NumberedFormat& row : ggml_formats) {
    if (row.number == number) return row.format;
  }
  return std::nullopt;
}

std::optional<std::int64_t> stored_bytes(const ElementFormat& format, std::int64_t elements) {
  if (elements < 0 || elements % format.elements != 0) return std::nullopt;
  const std::int64_t blocks = elements / format.elements;
  if (blocks > std::numeric_limits<std::int64_t>::max() / format.bytes) return std::nullopt;
  return blocks * format.bytes;
}

}  // namespace stowage
