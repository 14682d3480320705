// Recomputation: rewrites a step so that chosen results of the forward pass are dropped and
// computed again in the backward pass, value by value.
//
//   kept        c = conv(x)  y = relu(c)  ... |                       | backward that reads y, c
//   recomputed  c = conv(x)  y = relu(c)  ... | c' = conv(x)  y' = relu(c') | backward: y', c'
//
// A recomputed value is released after its last use in the forward pass. Its kernels run again
// directly before the first backward kernel that reads it (or before a recomputing kernel that
// reads it), on new storages, "conv1.recomputed". From then on it is kept, or it is released and
// computed once more before a later kernel (RecomputedValue::before). The inputs of these kernels
// are recomputed too, or kept until then. The kernels draw the same random numbers, and a batch
// norm uses the statistics of its first run (second_run.hpp). rerun_groups.hpp says which kernels
// may run again.
//
// Checkpointed regions (checkpoints.hpp), which PyTorch has, recompute whole layers at once
// instead.
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Other results of a value's kernels are recomputed with it. Sets LoweringSettings::recomputed to
/// the sorted values. Without values, or if the step does not train, the step is unchanged. Must
/// come after with_micro_batches(). Linear in the step, except for sorting.
/// Errors: the kernels are not our own executor's (PyTorch's autograd decides what it saves); the
/// step already has recomputed values; a name is not that of a storage or of a backward node, or
/// the storage cannot be recomputed; an input of a kernel is overwritten before the kernel would
/// run again.
[[nodiscard]] Result<StepGraph> with_recomputation(StepGraph step,
                                                   std::vector<RecomputedValue> values);

}  // namespace stowage
