// Inference holds what a module was called with until the module has returned.
//
//   layer1.0.conv1 reads x        layer1.0.conv1 reads x
//   layer1.0.conv2                layer1.0.conv2
//   layer1.1.conv1                layer1.1.conv1
//   layer1.1.conv2                layer1.1.conv2 holds x
//
// Eager PyTorch calls a module by `Module.__call__(*args)`, whose frame keeps the arguments while
// forward runs: whatever the layers within do, the input of a block is there until the block is
// done. Where a step trains, backward wants most of these anyway; without gradients they are the
// difference between what layers read and what is there.
//
// Modules are read off the layers' paths: "layer1.0.conv1" lies in "layer1.0", and that in
// "layer1"; a description's `modules:` names those that its layers' names do not show
// (Operator::path). A call of a module is a run of nodes whose layers lie in it. Its arguments are
// the activations that these nodes read and that were made before the run.
#pragma once

#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Adds each call's arguments to what the call's last node holds, where that node does not touch
/// them. `model`: what the step was lowered from, just now: comes first of all rewriting. Training
/// steps, and steps of kernel sets that do not free by reference, are left as they are. Linear in
/// the step, times the depth of its modules.
[[nodiscard]] StepGraph with_module_inputs(StepGraph step, const ModelGraph& model);

}  // namespace stowage
