// What is asked about serving, and its reader.
#pragma once

#include <optional>

#include "cli/options/arguments.hpp"
#include "cli/options/request.hpp"
#include "estimator/card/card.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// nullopt: nothing is asked about serving. `searched`: the option that batch looks for, which
/// need not be given. Errors: an option of serving without --context-length, what does not go with
/// a cache (training, a step's --batch beside --users), a format that its kind does not
/// store.
[[nodiscard]] Result<std::optional<ServingSettings>> read_serving(const Arguments& arguments,
                                                                  std::string_view searched = {});

/// batch's --of, with the settings of serving that it is asked about.
struct LargestOfRequest {
  std::optional<LargestOf> what;
  std::optional<ServingSettings> serving;
};
/// Errors: read_serving's; --at-batch without `--of seq`, an option that says what is looked for.
[[nodiscard]] Result<LargestOfRequest> read_largest_of(const Arguments& arguments);

/// The settings with the prefill chunk that a server takes where none is said: vLLM's OpenAI server
/// takes 8192 tokens on cards of at least 70 GiB that are no A100, else 2048
/// (vllm/engine/arg_utils.py, get_batch_defaults). transformers takes prompts at once.
[[nodiscard]] ServingSettings with_usual_chunk(ServingSettings settings, const Card& card);

}  // namespace stowage
