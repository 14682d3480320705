#include "estimator/rewrite/node_insertion.hpp"

#include <utility>

#include "estimator/rewrite/renumber.hpp"

namespace stowage {

void NodeInsertion::put_into(StepGraph& step) && {
  for (NodeId& id : place_) {
    if (id.index() == nodes_.size()) id = last_id();  // dropped, and none follows
  }
  place_.push_back(NodeId::of(nodes_.size()));
  step.nodes = std::move(nodes_);
  renumber_nodes(step, place_);
}

void insert_nodes(StepGraph& step, std::multimap<std::size_t, KernelNode> before,
                  std::multimap<std::size_t, KernelNode> behind) {
  NodeInsertion nodes(step.nodes.size(), before.size() + behind.size());
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const auto insert = [&](std::multimap<std::size_t, KernelNode>& made) {
      const auto [first, end] = made.equal_range(n);
      for (auto at = first; at != end; ++at) nodes.insert(std::move(at->second));
    };
    insert(before);
    nodes.keep(std::move(step.nodes[n]));
    insert(behind);
  }
  std::move(nodes).put_into(step);
}

}  // namespace stowage
