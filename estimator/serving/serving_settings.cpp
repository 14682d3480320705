#include "estimator/serving/serving_settings.hpp"

#include <array>
#include <utility>

namespace stowage {

namespace {

constexpr std::array<std::pair<CacheKind, std::string_view>, 4> kinds{
    {{CacheKind::dynamic, "dynamic"},
     {CacheKind::static_, "static"},
     {CacheKind::paged, "paged"},
     {CacheKind::quantised, "quantized"}}};

constexpr std::array<std::pair<CacheFormat, std::string_view>, 8> formats{
    {{CacheFormat::model, "auto"},
     {CacheFormat::fp8, "fp8"},
     {CacheFormat::int8, "int8"},
     {CacheFormat::fp16, "fp16"},
     {CacheFormat::bf16, "bf16"},
     {CacheFormat::fp32, "fp32"},
     {CacheFormat::int4, "int4"},
     {CacheFormat::int2, "int2"}}};

}  // namespace

std::string_view to_string(CacheKind kind) { return kinds[static_cast<std::size_t>(kind)].second; }

std::optional<CacheKind> find_cache_kind(std::string_view name) {
  for (const auto& [kind, word] : kinds) {
    if (word == name) return kind;
  }
  return std::nullopt;
}

std::string_view to_string(CacheFormat format) {
  return formats[static_cast<std::size_t>(format)].second;
}

std::optional<CacheFormat> find_cache_format(std::string_view name) {
  for (const auto& [format, word] : formats) {
    if (word == name) return format;
  }
  return std::nullopt;
}

DataType stored_type(CacheFormat format, DataType model) {
  switch (format) {
    case CacheFormat::model:
      return model;
    case CacheFormat::fp8:
    case CacheFormat::int8:
    case CacheFormat::int4:
    case CacheFormat::int2:
      return DataType::uint8;
    case CacheFormat::fp16:
      return DataType::float16;
    case CacheFormat::bf16:
      return DataType::bfloat16;
    case CacheFormat::fp32:
      return DataType::float32;
  }
  return model;
}

bool is_packed(CacheFormat format) {
  return format == CacheFormat::int4 || format == CacheFormat::int2;
}

bool has_scale(CacheFormat format) {
  return format == CacheFormat::fp8 || format == CacheFormat::int8;
}

std::int64_t cached_tokens(std::int64_t tokens, const ServingSettings& settings) {
  if (settings.cache != CacheKind::paged) return tokens;
  return (tokens + settings.block - 1) / settings.block * settings.block;
}

}  // namespace stowage
