#include "estimator/rewrite/node_insertion.hpp"

#include <utility>

#include "estimator/rewrite/renumber.hpp"

namespace stowage {

void NodeInsertion::put_into(StepGraph& step) && {
  place_.push_back(NodeId::of(nodes_.size()));
  step.nodes = std::move(nodes_);
  renumber_nodes(step, place_);
}

}  // namespace stowage
