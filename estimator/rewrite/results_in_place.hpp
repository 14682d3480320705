// Kernels that write their result over an argument that nothing needs any more.
//
//   apart     dy = data(dz, w)   dx = relu_backward(y, dy)   dw = filter(x, dx)
//   in place  dy = data(dz, w)   dy = relu_backward(y, dy)   dw = filter(x, dy)
//
// A kernel's signature says over which arguments it may write ("dx over dy", kernel_list.hpp). The
// result's storage then becomes one with the argument's, under the argument's name, where
//
// - the kernel is the last to use the argument's storage, under whatever view, and reads it once;
// - both are activations, or gradients of such, and the views of both are whole storages of one
//   shape and type;
// - neither is an input, a loss, the output, saved by forward for backward, or a parameter's
//   gradient, as it is or as it arrives: the argument would be lost, or the result be found
//   elsewhere.
//
// Of a training step the output is no result, and it is never made again (rerun_groups.hpp): the
// gradient that backward starts from may take its place. Other activations backward leaves alone.
//
// What forward wrote over, backward can make again only together with what was written over it. So
// a kernel of a training step's forward pass writes over what it alone reads.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Sets LoweringSettings::in_place. Comes after checkpointed regions, whose kernels read again what
/// enters them, and before all other rewriting, which keeps the storages that it finds. Every order
/// of the nodes that is made of the result keeps readers of an argument before the kernel that
/// writes over it (node_dependences.hpp). Linear in the step.
/// Errors: the kernels are not our own executor's; the step has several micro-batches, recomputed
/// values, early updates or an order of its own; it works in place already.
[[nodiscard]] Result<StepGraph> with_results_in_place(StepGraph step);

}  // namespace stowage
