// An inference in parts, segment by segment: all parts of the batch run through one segment of the
// network before the first of them goes on.
//
//   in parts     a0 b0 c0 d0 | a1 b1 c1 d1
//   in segments  a0 b0 | a1 b1 | c0 d0 | c1 d1
//
// The weights of a segment are then used in one go: where they do not all fit on the GPU, each is
// uploaded once a step instead of once a part. What crosses a border waits, on the host where the
// GPU has no room for it.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// `step` is with_micro_batches' of an inference; `borders` say before which of a part's nodes,
/// counted from 0, a segment begins after the first: ascending, above 0, below their number. An
/// order as with_order() takes and records it. Errors: with_order's; the step trains, has one part
/// or does not say which nodes are one.
[[nodiscard]] Result<StepGraph> with_segments(StepGraph step,
                                              const std::vector<std::int32_t>& borders);

/// Of an inference in parts: in how many goes its first part runs; 1 where no other comes between,
/// and of a training step.
[[nodiscard]] int segment_count(const StepGraph& step);

}  // namespace stowage
