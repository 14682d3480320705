// NodeInsertion: builds a new list of nodes for a step: its own nodes in their order, with others
// inserted between them.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Call keep() or drop() once for each node of the step, in order, and insert() for others at the
/// places where they belong.
class NodeInsertion {
 public:
  NodeInsertion() = default;
  /// Reserves room for that many nodes, so that references to them stay valid.
  NodeInsertion(std::size_t of_step, std::size_t others) {
    place_.reserve(of_step + 1);
    nodes_.reserve(of_step + others);
  }

  /// Appends the original step's next node.
  KernelNode& keep(KernelNode node) {
    place_.push_back(NodeId::of(nodes_.size()));
    nodes_.push_back(std::move(node));
    return nodes_.back();
  }
  /// Leaves the original step's next node out: what refers to it refers to the one that follows, or
  /// to the last one where none does.
  void drop() { place_.push_back(NodeId::of(nodes_.size())); }
  KernelNode& insert(KernelNode node) {
    nodes_.push_back(std::move(node));
    return nodes_.back();
  }

  /// The last node; null: there is none.
  [[nodiscard]] KernelNode* last() { return nodes_.empty() ? nullptr : &nodes_.back(); }
  /// Its id in the new step.
  [[nodiscard]] NodeId last_id() const { return NodeId::of(nodes_.size() - 1); }

  /// Replaces the step's nodes by these, and updates everything in the step that refers to a node
  /// by number. Precondition: keep() or drop() was called for all of the step's nodes.
  void put_into(StepGraph& step) &&;

 private:
  std::vector<KernelNode> nodes_;
  std::vector<NodeId> place_;  // by original node
};

/// Inserts nodes before and behind nodes of the step, each by the number of that one.
void insert_nodes(StepGraph& step, std::multimap<std::size_t, KernelNode> before,
                  std::multimap<std::size_t, KernelNode> behind);

}  // namespace stowage
