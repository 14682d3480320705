// The options of --runtime tensorflow: how much of the card its pools may take.
#pragma once

#include <cstdint>
#include <string>

#include "cli/arguments.hpp"
#include "cli/json_value.hpp"
#include "estimator/check/check_settings.hpp"

namespace stowage {

/// --memory-limit, --memory-growth, --memory-fraction, --virtual-gpus.
/// Errors: any of them with another runtime; those that exclude or want each other.
[[nodiscard]] Result<TensorFlowMemory> requested_tensorflow(const Arguments& arguments,
                                                            Runtime runtime);

/// Of a batch of all virtual GPUs what the largest share is.
[[nodiscard]] std::int64_t replica_batch(std::int64_t batch, const CheckSettings& settings);
/// Replicas of the step: virtual GPUs, or one.
[[nodiscard]] std::int64_t replica_count(const CheckSettings& settings);

/// "; 32 on each of 2 virtual GPUs", or nothing.
[[nodiscard]] std::string describe_replicas(std::int64_t batch, const CheckSettings& settings);

/// Null with other runtimes.
[[nodiscard]] Json tensorflow_json(const CheckSettings& settings);

}  // namespace stowage
