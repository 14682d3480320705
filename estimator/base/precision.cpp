#include "estimator/base/precision.hpp"

#include <algorithm>
#include <array>

namespace stowage {

namespace {

constexpr std::array<std::string_view, 8> names{"fp32",     "fp64",     "fp16",       "bf16",
                                                "amp-fp16", "amp-bf16", "mixed-fp16", "mixed-bf16"};

}  // namespace

std::string_view to_string(Precision precision) {
  return names[static_cast<std::size_t>(precision)];
}

std::optional<Precision> parse_precision(std::string_view text) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Precision>(found - names.begin());
}

std::span<const std::string_view> precision_names() { return names; }

DataType float_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::amp_fp16:
    case Precision::amp_bf16:
      return DataType::float32;
    case Precision::fp64:
      return DataType::float64;
    case Precision::fp16:
    case Precision::mixed_fp16:
      return DataType::float16;
    case Precision::bf16:
    case Precision::mixed_bf16:
      return DataType::bfloat16;
  }
  return DataType::float32;
}

std::optional<DataType> autocast_type(Precision precision) {
  if (precision == Precision::amp_fp16) return DataType::float16;
  if (precision == Precision::amp_bf16) return DataType::bfloat16;
  return std::nullopt;
}

bool has_master_weights(Precision precision) {
  return precision == Precision::mixed_fp16 || precision == Precision::mixed_bf16;
}

std::string_view to_string(AutocastClass autocast) {
  switch (autocast) {
    case AutocastClass::as_is:
      return "as is";
    case AutocastClass::lower:
      return "lower";
    case AutocastClass::float32:
      return "fp32";
  }
  return "";
}

DataType autocast_input(AutocastClass autocast, DataType lower, DataType type) {
  // Autocast leaves integers and float64 alone.
  if (!is_floating_point(type) || type == DataType::float64) return type;
  switch (autocast) {
    case AutocastClass::as_is:
      return type;
    case AutocastClass::lower:
      return lower;
    case AutocastClass::float32:
      return DataType::float32;
  }
  return type;
}

DataType promoted(DataType a, DataType b) {
  if (a == b) return a;
  if (is_floating_point(a) != is_floating_point(b)) return is_floating_point(a) ? a : b;
  if (element_size(a) != element_size(b)) return element_size(a) > element_size(b) ? a : b;
  return is_floating_point(a) ? DataType::float32 : a;
}

DataType statistics_type(DataType type) {
  return type == DataType::float64 ? DataType::float64 : DataType::float32;
}

}  // namespace stowage
