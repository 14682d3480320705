// Does a model that serves fit a card? Prefill and decode, with the keys and values of all users.
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/memory.hpp>
#include <stowage/message.hpp>
#include <stowage/model.hpp>
#include <string>

namespace stowage {

struct ServingFitQuestion {
  StepSpec step;  ///< an inference, whatever it says
  GpuSpec gpu;
  std::int64_t context_length = 0;  ///< tokens of a user, at least 1
  std::int64_t users = 1;
  std::string cache;      ///< "paged", "dynamic", "static", "quantized"; empty: the model's usual
  std::string kv_format;  ///< "fp8", "int8", "int4"; empty: as the model computes
  std::optional<std::int64_t>
      prefill_chunk;  ///< tokens of a prefill step; absent: a server's usual
};

struct ServingFitAnswer {
  bool fits = false;
  std::int64_t device_bytes = 0;  ///< of the larger pass
  std::int64_t cache_bytes = 0;   ///< keys and values of all users
  std::string cache;              ///< that was taken
  MemoryPeak prefill, decode;
  Messages notes;
};

/// Errors: as a FitQuestion's; a model without a context; a format that the cache does not store.
[[nodiscard]] Answered<ServingFitAnswer> ask(const ServingFitQuestion& question);

}  // namespace stowage
