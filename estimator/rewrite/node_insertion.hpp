// NodeInsertion: a step's nodes written anew, with others among them.
#pragma once

#include <utility>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Is given each node of the step once, in their order, and others wherever they belong.
class NodeInsertion {
 public:
  NodeInsertion() = default;
  /// With room for as many: the nodes that are returned stay where they are.
  NodeInsertion(std::size_t of_step, std::size_t others) {
    place_.reserve(of_step + 1);
    nodes_.reserve(of_step + others);
  }

  /// The step's next.
  KernelNode& keep(KernelNode node) {
    place_.push_back(NodeId::of(nodes_.size()));
    nodes_.push_back(std::move(node));
    return nodes_.back();
  }
  KernelNode& insert(KernelNode node) {
    nodes_.push_back(std::move(node));
    return nodes_.back();
  }

  /// The node that was added last; null: none was.
  [[nodiscard]] KernelNode* last() { return nodes_.empty() ? nullptr : &nodes_.back(); }
  /// What it will be in the step.
  [[nodiscard]] NodeId last_id() const { return NodeId::of(nodes_.size() - 1); }

  /// The step has these nodes from now on, and whatever in it refers to a node refers to that node
  /// where it stands now. Precondition: all of the step's own have been kept.
  void put_into(StepGraph& step) &&;

 private:
  std::vector<KernelNode> nodes_;
  std::vector<NodeId> place_;  // by node as it was
};

}  // namespace stowage
