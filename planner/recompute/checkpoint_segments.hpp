// sqrt_segments: checkpointing as it is usually done. The forward pass is cut into about as many
// segments as each has layers, and all but the last segment run again in backward (Chen et al.
// 2016). A baseline for plans; segments.hpp cuts by values and bytes instead.
#pragma once

#include <vector>

#include "estimator/rewrite/checkpoints.hpp"

namespace stowage {

/// The regions for with_checkpoints. n layers with forward kernels fall into the square root of n
/// segments, rounded up. If a layer works in place on a value from before it, no boundary lies
/// before it: the next possible layer begins the segment. Empty: fewer than two segments are left.
[[nodiscard]] std::vector<CheckpointRegion> sqrt_segments(const StepGraph& step);

}  // namespace stowage
