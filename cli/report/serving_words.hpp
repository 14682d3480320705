// Serving in words and as JSON: what is served, and what a pass computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/output/json_value.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

struct DescribedPass {
  std::string_view name;                                      ///< "Prefill"
  std::int64_t batch = 1, tokens = 1, past = 0, encoded = 0;  ///< as ServingPass
};
/// "Prefill: 2,048 tokens of one user, 6,144 cached before"
[[nodiscard]] std::string describe_pass(const DescribedPass& pass);

struct DescribedServing {
  std::string_view model;
  const ServingSettings& settings;
  std::int64_t encoded = 0;  ///< positions of an encoder; 0: there is none
  Precision precision = Precision::fp32;
};
/// "llama-3-8b serving 32 users of 8,192 tokens, bf16, paged cache in blocks of 16"
[[nodiscard]] std::string describe_serving(const DescribedServing& serving);

/// "context_length", "users", "cache", ... `encoded`: "encoder_length" as well, null for 0.
[[nodiscard]] Json::Object served_json(const ServingSettings& settings,
                                       std::optional<std::int64_t> encoded = std::nullopt);
/// Adds "sequences", "tokens_of_each", "cached_before".
void add_pass(const DescribedPass& pass, Json::Object& object);

}  // namespace stowage
