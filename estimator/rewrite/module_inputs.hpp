// In inference, extends the lifetimes of a module call's arguments until the module returns.
//
//   layer1.0.conv1 reads x        layer1.0.conv1 reads x
//   layer1.0.conv2                layer1.0.conv2
//   layer1.1.conv1                layer1.1.conv1
//   layer1.1.conv2                layer1.1.conv2 holds x
//
// Eager PyTorch calls a module by `Module.__call__(*args)`, whose frame holds the arguments while
// forward runs. So the input of a block lives until the block is done, whatever its layers do. In
// training most of these tensors are saved for backward anyway; in inference this holds tensors
// that no later layer reads.
//
// The modules come from the layers' paths: "layer1.0.conv1" is in "layer1.0", and that in "layer1".
// A description's `modules:` adds those that the layers' names do not show (Operator::path). A call
// of a module is a contiguous run of nodes whose layers are in it. Its arguments are the
// activations that these nodes read and that were made before the run.
#pragma once

#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Adds each call's arguments to KernelNode::holds of the call's last node, unless that node reads
/// them. Must be the first rewrite after lowering `model`. Training steps, and steps of kernel sets
/// that do not free by reference counting, are unchanged. Linear in the step, times the depth of
/// its modules.
[[nodiscard]] StepGraph with_module_inputs(StepGraph step, const ModelGraph& model);

/// Adds the storage to the node's holds, unless the node reads, writes or holds it.
void hold_in(KernelNode& node, StorageId id);

}  // namespace stowage
