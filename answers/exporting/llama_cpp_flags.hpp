// The options of llama.cpp that a served model and a plan of serving have in common. Internal to
// answers/exporting.
#pragma once

#include <cstdint>
#include <string_view>

#include "answers/exporting/flag_list.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/base/precision.hpp"
#include "estimator/serving/serving_settings.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Whether it is a parameter, or a buffer beside one.
[[nodiscard]] bool is_weight(const Storage& storage);
/// The number of a block: 3 of "model.layers.3". Precondition: block_of made it.
[[nodiscard]] std::int64_t block_number(std::string_view block);

/// ggml's name for the type of a cache: "q8_0". Errors: it has none.
[[nodiscard]] Result<std::string_view> ggml_cache_type(CacheFormat format, Precision precision);

/// Adds the context, its users, the batches of prefill, and the cache's type. Automatic fitting is
/// off: it would change what is asked for.
void add_context(const ServingSettings& serving, std::string_view cache_type, FlagList& flags);

}  // namespace stowage
