// Updates a step's references to nodes, convolutions and storages after these got new numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Updates the node numbers in storages, saved tensors and StepGraph::micro_batch. `place`: the new
/// number of each original node, and of the end.
void renumber_nodes(StepGraph& step, const std::vector<NodeId>& place);

/// Rebuilds the list of convolutions in the order of the nodes that call them. One that two nodes
/// call is duplicated.
void renumber_convolutions(StepGraph& step);

/// Reorders the storages. `place`: the new number of each original storage. The bounds of the
/// micro-batch's storages are not changed.
void move_storages(StepGraph& step, const std::vector<StorageId>& place);

/// Moves the storages from `added` on, which were made for a micro-batch, to the end of the
/// micro-batch's own. Without a micro-batch they stay where they are.
void into_micro_batch(StepGraph& step, std::size_t added);

/// Takes storages out of the step. Precondition: no node, input, loss, output or variable has one
/// of the `gone`; saved tensors and gradients of them go too. The bounds of the micro-batch's
/// storages are not changed.
void drop_storages(StepGraph& step, const std::vector<bool>& gone);

/// Merges storages. `into`: for each storage itself, or a remaining one, whose name and properties
/// are kept. The remaining storages keep their order and get consecutive numbers.
void join_storages(StepGraph& step, const std::vector<StorageId>& into);

}  // namespace stowage
