// What refers to a step's nodes, convolutions and storages by number, once these have moved.
#pragma once

#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Of storages and of the micro-batch. `place`: by node as it was, and one past the last.
void renumber_nodes(StepGraph& step, const std::vector<NodeId>& place);

/// Convolutions in the order of the nodes that call them; one that is called twice is there twice.
void renumber_convolutions(StepGraph& step);

/// Storages that stand elsewhere: each at `place`, by storage as it was. The bounds of the
/// micro-batch's storages are left as they are.
void move_storages(StepGraph& step, const std::vector<StorageId>& place);

/// Storages that become one. `into`: by storage, itself, or one that stays, with its name and
/// properties. Those that stay keep their order and close up.
void join_storages(StepGraph& step, const std::vector<StorageId>& into);

}  // namespace stowage
