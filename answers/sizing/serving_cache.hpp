// Which cache of keys and values stores which format.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// The settings with the kind of cache that their format needs where none was asked for, and the
/// format that their kind has where none was. Errors: a format that the kind does not store, a
/// chunked prefill with transformers' quantised cache.
[[nodiscard]] Result<ServingSettings> with_suitable_cache(ServingSettings settings);

}  // namespace stowage
