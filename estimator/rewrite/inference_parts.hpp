// An inference in parts: rewrites an inference so that its batch runs in several equal parts, one
// after the other, whose outputs are put together.
//
//   whole    x -> y
//   parts    x[0:2] -> y0, y made, y0 to y[0:2] | x[2:4] -> y1, y1 to y[2:4] | ...
//
// The inputs are there for the whole batch, and so is the output, "NAME.whole", from the end of the
// first part on. A part's own outputs are let go when all have been copied there. Parameters and
// buffers are there once.
#pragma once

#include <cstdint>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The result's batch is that of one part; sizes of the inputs and of the whole output are `parts`
/// times as large. MicroBatch is unset. Linear in the nodes of the result.
/// Errors: the step trains; the first axis of its output is not the batch, or the output is an
/// input; an input has the batch in another axis; what the script keeps does not grow with the
/// batch alone; a kernel writes to what stays from step to step (a cache).
[[nodiscard]] Result<StepGraph> with_inference_parts(StepGraph step, std::int64_t parts);

}  // namespace stowage
