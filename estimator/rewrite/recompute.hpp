// A step whose backward pass makes some results of the forward pass again, value by value, out of
// one that keeps them all.
//
//   kept        c = conv(x)  y = relu(c)  ... |                       | backward that reads y, c
//   recomputed  c = conv(x)  y = relu(c)  ... | c' = conv(x)  y' = relu(c') | backward: y', c'
//
// A recomputed value is let go after its last use in the forward pass. Its kernels run again just
// before the first backward kernel that reads it (or before another that runs again and reads it),
// on storages of their own, "conv1.recomputed"; from then on it is kept, or let go and made once
// more before a later one (RecomputedValue::before). What those kernels read is recomputed too, or
// is kept until then. They draw the random numbers that they drew before, and a
// batch norm takes the statistics that it made before (second_run.hpp). rerun_groups.hpp says which
// kernels that may be.
//
// Checkpointed regions (checkpoints.hpp) are PyTorch's way: whole layers, all at once.
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// What else a value's kernels make is recomputed with it. Recorded in the settings
/// (LoweringSettings::recomputed), sorted. No values, or a step that does not train: the step as it
/// is. Comes after micro-batches, which cannot be made of what it returns. Linear in the step, but
/// for sorting.
/// Errors: the kernels are not our own executor's (PyTorch's autograd decides what it keeps); the
/// step has recomputed values already; a name is no storage's or no backward node's, or is of a
/// storage that cannot be recomputed; what a kernel reads is overwritten before it would run again.
[[nodiscard]] Result<StepGraph> with_recomputation(StepGraph step,
                                                   std::vector<RecomputedValue> values);

}  // namespace stowage
