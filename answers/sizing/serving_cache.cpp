#include "answers/sizing/serving_cache.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

Diagnostics mistakes_of_quantised(const ServingSettings& settings) {
  Diagnostics mistakes;
  if (!is_packed(settings.format) && settings.format != CacheFormat::fp8) {
    mistakes.push_back(question_error(
        fmt::format("transformers' quantised cache stores int4, int2 or fp8, and `kv_dtype` is {}",
                    to_string(settings.format)),
        "int4 and int2 are quanto's; what HQQ stores, which also has 8, 3 and 1 bits, is not "
        "sized"));
  }
  if (settings.prefill_chunk) {
    mistakes.push_back(
        question_error("a quantised cache takes prompts at once: leave out `prefill_chunk`"));
  }
  return mistakes;
}

/// What the kind of cache does not store.
Diagnostics mistakes_of(const ServingSettings& settings) {
  if (settings.cache == CacheKind::quantised) return mistakes_of_quantised(settings);
  if (settings.cache == CacheKind::paged) {
    if (!is_packed(settings.format)) return {};
    return {question_error(fmt::format("a paged cache stores no {}", to_string(settings.format)),
                           "`cache` quantized does, as transformers and quanto pack it")};
  }
  if (settings.format == CacheFormat::model) return {};
  return {question_error(
      fmt::format("transformers' {} cache keeps keys and values as the model computes them, and "
                  "`kv_dtype` is {}",
                  to_string(settings.cache), to_string(settings.format)),
      "`cache` paged stores other formats, `cache` quantized int4, int2 and fp8")};
}

}  // namespace

Result<ServingSettings> with_suitable_cache(ServingSettings settings) {
  // transformers' own default, nbits=4; and no other cache stores what this one packs.
  if (settings.cache_is_default && is_packed(settings.format)) {
    settings.cache = CacheKind::quantised;
    settings.cache_is_default = false;
  }
  if (settings.cache == CacheKind::quantised && settings.format == CacheFormat::model) {
    settings.format = CacheFormat::int4;
  }
  Diagnostics mistakes = mistakes_of(settings);
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return settings;
}

}  // namespace stowage
