// Lets kernels write their result over an argument that is not needed any more.
//
//   apart     dy = data(dz, w)   dx = relu_backward(y, dy)   dw = filter(x, dx)
//   in place  dy = data(dz, w)   dy = relu_backward(y, dy)   dw = filter(x, dy)
//
// A kernel's signature says over which arguments it may write ("dx over dy", kernel_list.hpp). The
// result's storage is then merged into the argument's, under the argument's name, if
//
// - the kernel is the last to use the argument's storage, under whatever view, and reads it once;
// - both are activations, or gradients of such, and the views of both are whole storages of one
//   shape and type;
// - neither is an input, a loss, the output, a tensor saved for backward, or a parameter's
//   gradient, accumulated or arriving: these are needed later, or must keep their storage.
//
// The output of a training step is not a result of the step, and it is never recomputed
// (rerun_groups.hpp), so the first gradient of backward may overwrite it. Backward overwrites no
// other activations.
//
// If forward overwrites a value, the value and its replacement can only be recomputed together. So
// a kernel in the forward pass of a training step overwrites an argument only if it is the only
// reader.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Sets LoweringSettings::in_place. Must come after with_checkpoints(), since a region's kernels
/// read its inputs again, and before all other rewrites, which keep the existing storages. Later
/// changes of the order keep the readers of an argument before the kernel that overwrites it
/// (node_dependences.hpp). Linear in the step.
/// Errors: the kernels are not our own executor's; the step has several micro-batches, recomputed
/// values, early updates or a changed order; this rewrite was already applied.
[[nodiscard]] Result<StepGraph> with_results_in_place(StepGraph step);

}  // namespace stowage
