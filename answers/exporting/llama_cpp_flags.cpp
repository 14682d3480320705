#include "answers/exporting/llama_cpp_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "answers/question/question_error.hpp"

namespace stowage {

bool is_weight(const Storage& storage) {
  return storage.storage_class == StorageClass::parameter ||
         storage.storage_class == StorageClass::buffer;
}

std::int64_t block_number(std::string_view block) {
  return std::stoll(std::string(block.substr(block.rfind('.') + 1)));
}

Result<std::string_view> ggml_cache_type(CacheFormat format, Precision precision) {
  switch (format) {
    case CacheFormat::fp32:
      return "f32";
    case CacheFormat::fp16:
      return "f16";
    case CacheFormat::bf16:
      return "bf16";
    case CacheFormat::int8:
      return "q8_0";
    case CacheFormat::int4:
      return "q4_0";
    case CacheFormat::model:
      break;
    case CacheFormat::fp8:
    case CacheFormat::int2:
      return failure(question_error(
          fmt::format("`kv_dtype` {}: llama.cpp stores no such cache", to_string(format)),
          "`kv_dtype` int8 is its q8_0, int4 its q4_0"));
  }
  const DataType type = float_type(precision);
  if (type == DataType::bfloat16) return "bf16";
  return type == DataType::float16 ? "f16" : "f32";
}

void add_context(const ServingSettings& serving, std::string_view cache_type, FlagList& flags) {
  const std::int64_t tokens = serving.context_length * serving.users;
  const std::int64_t chunk =
      std::min(serving.prefill_chunk.value_or(serving.context_length), tokens);
  flags.add("c", tokens);
  flags.add("np", serving.users);
  flags.add("b", chunk);
  flags.add("ub", chunk);
  flags.add("cache-type-k", cache_type);
  flags.add("cache-type-v", cache_type);
  flags.add("fa", "on");
  flags.add("fit", "off");
}

}  // namespace stowage
