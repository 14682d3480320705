// The scratch memory that belongs to one node, and that node's list of it.
//
// A kernel may write a result that nobody wants: the gradient of a bias that the layer has not. It
// is of class `temporary`, an argument of the node, and scratch of the node as well. Whoever places
// a step reads the node's list of temporaries, so that list has to hold it.
#pragma once

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Whether the storage is there during one node only: a temporary, or a workspace where nodes do
/// not share it. Precondition: the id is one of the step's.
[[nodiscard]] bool belongs_to_one_node(const StepGraph& graph, StorageId id);

/// Adds to the node's temporaries those of its arguments that belong to it and are not listed.
void list_own_scratch(const StepGraph& graph, KernelNode& node);

}  // namespace stowage
