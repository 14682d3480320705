// The replicas of a step: TensorFlow's virtual GPUs, each with a share of the batch.
#pragma once

#include <cstdint>

#include "estimator/runtime/check_settings.hpp"

namespace stowage {

/// Virtual GPUs, or one.
[[nodiscard]] std::int64_t replica_count(const CheckSettings& settings);
/// The largest share of a batch of all replicas.
[[nodiscard]] std::int64_t replica_batch(std::int64_t batch, const CheckSettings& settings);

}  // namespace stowage
