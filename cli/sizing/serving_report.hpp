// How serving is shown: the cache, each pass's peak, the verdict.
#pragma once

#include <string>

#include "cli/sizing/serving.hpp"

namespace stowage {

[[nodiscard]] Answer serving_answer(const ServingReport& report, const ServedModel& served,
                                    bool verbose);

/// "llama-3-8b serving 32 users of 8,192 tokens, bf16, paged cache in blocks of 16"
[[nodiscard]] std::string describe_serving(const ServingReport& report);

/// Bytes of the cache's storages, of all users and layers, as they lie in the decode pass.
[[nodiscard]] Bytes cache_bytes(const ServingReport& report);

/// The members `serving`, `prefill`, `decode`.
[[nodiscard]] Json::Object serving_json(const ServingReport& report, const Card& card);

}  // namespace stowage
