// What refers to a step's nodes and convolutions by number, once these have moved.
#pragma once

#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Of storages and of the micro-batch. `place`: by node as it was, and one past the last.
void renumber_nodes(StepGraph& step, const std::vector<NodeId>& place);

/// Convolutions in the order of the nodes that call them; one that is called twice is there twice.
void renumber_convolutions(StepGraph& step);

}  // namespace stowage
