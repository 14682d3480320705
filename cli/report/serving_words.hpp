// Serving in words: what is served, and what a pass computes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace stowage
