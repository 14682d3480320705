// Checkpointing as people do it: the forward pass in about as many segments as each has layers,
// all of which but the last run again in backward (Chen et al. 2016). A baseline for plans;
// segments.hpp is the same idea by values and bytes.
#pragma once

#include <vector>

#include "estimator/rewrite/checkpoints.hpp"

namespace stowage {

/// For with_checkpoints. n layers with forward kernels fall into the square root of n segments,
/// rounded up; a boundary before a layer that works in place on what was made before it moves to
/// the next that may be one. Empty: fewer than two segments are left.
[[nodiscard]] std::vector<CheckpointRegion> sqrt_segments(const StepGraph& step);

}  // namespace stowage
