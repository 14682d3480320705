// Reorders an inference whose batch is split into parts, segment by segment: all parts run through
// one segment of the network before the first of them continues.
//
//   in parts     a0 b0 c0 d0 | a1 b1 c1 d1
//   in segments  a0 b0 | a1 b1 | c0 d0 | c1 d1
//
// All uses of a segment's weights are then close together: if the weights do not all fit on the
// GPU, each is uploaded once per step instead of once per part. Activations between segments must
// be stored for all parts, on the host if the GPU has no room.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// `step`: an inference from with_micro_batches(). `borders`: the node of a part, counted from 0,
/// at which each segment after the first begins; ascending, above 0 and below the number of nodes.
/// The result has an order as with_order() sets it. Errors: those of with_order(); the step trains,
/// has a single part, or does not have StepGraph::micro_batch.
[[nodiscard]] Result<StepGraph> with_segments(StepGraph step,
                                              const std::vector<std::int32_t>& borders);

/// The number of segments of an inference in parts: into how many contiguous runs its first part is
/// split. 1 for a training step.
[[nodiscard]] int segment_count(const StepGraph& step);

}  // namespace stowage
