// How serving is shown: the cache, each pass's peak, the verdict.
#pragma once

#include <string>

#include "cli/serving.hpp"

namespace stowage {

[[nodiscard]] Answer serving_answer(const ServingReport& report, const ServedModel& served,
                                    bool verbose);

/// "llama-3-8b serving 32 users of 8,192 tokens, bf16, paged cache in blocks of 16"
[[nodiscard]] std::string describe_serving(const ServingReport& report);
/// As above; what a search looks for is left open: "serving users of 8,192 tokens".
[[nodiscard]] std::string describe_serving(const std::string& model, Precision precision,
                                           const ServingSettings& settings,
                                           std::optional<LargestOf> searched);

/// Bytes of the cache's storages, of all users and layers, as they lie in the decode pass.
[[nodiscard]] Bytes cache_bytes(const ServingReport& report);

/// The members `serving`, `prefill`, `decode`.
[[nodiscard]] Json::Object serving_json(const ServingReport& report, const Card& card);

}  // namespace stowage
