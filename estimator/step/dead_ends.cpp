// What branches save whose gradient nobody asks for.
//
// argmax of a layer's result, a comparison, an output that nothing reads: autograd builds the graph
// of what leads there all the same, and saves for a backward pass that never comes. The graph of a
// tensor goes with the tensor, or with the last one that was computed from it.
#include <algorithm>

#include "estimator/model/operator_row.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

/// By OperatorId: the last node of the operators up to this one. Precondition: nodes of forward.
std::vector<NodeId> last_nodes(const StepGraph& graph, std::size_t operators) {
  std::vector<NodeId> last(operators);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const OperatorId op = graph.nodes[i].op;
    if (op.valid()) last[op.index()] = NodeId::of(i);
  }
  for (std::size_t i = 1; i < operators; ++i) {
    if (!last[i].valid()) last[i] = last[i - 1];
  }
  return last;
}

}  // namespace

// By OperatorId: whether it has a node in autograd's graph.
std::vector<bool> StepBuilder::with_autograd_node() const {
  std::vector<bool> with(model_.operators.size());
  for (std::size_t i = 0; i < with.size(); ++i) {
    const Operator& op = model_.operators[i];
    with[i] = rules_of(op).backward != nullptr &&
              (op.row->is_loss || tensor_needs_gradient_[op.outputs.front().index()]);
  }
  return with;
}

bool StepBuilder::has_gradient(TensorId id) const {
  return tensor_needs_gradient_[id.index()] && is_floating_point(model_.tensor(id).type.type);
}

void StepBuilder::hold_what_dead_ends_saved() {
  const std::vector<bool> with_node = with_autograd_node();
  std::vector<bool> reaches_loss(model_.tensors.size());
  // By TensorId: the last operator that reads it or what was computed from it, with a gradient.
  std::vector<OperatorId> end(model_.tensors.size());
  reaches_loss[model_.loss.index()] = true;
  std::vector<std::pair<OperatorId, OperatorId>> held;  // what it saved, up to where
  for (std::size_t i = model_.operators.size(); i-- > 0;) {
    const Operator& op = model_.operators[i];
    OperatorId last = OperatorId::of(i);
    bool reaches = false;
    for (const TensorId output : op.outputs) {
      reaches = reaches || reaches_loss[output.index()];
      if (end[output.index()].valid() && has_gradient(output)) {
        last = std::max(last, end[output.index()]);
      }
    }
    if (with_node[i] && !reaches && last.index() > i && !saved_[i].empty()) {
      held.emplace_back(OperatorId::of(i), last);
    }
    for (const TensorId input : op.inputs) {
      if (!has_gradient(input)) continue;
      OperatorId& of_input = end[input.index()];
      const OperatorId read = with_node[i] ? last : OperatorId::of(i);
      of_input = of_input.valid() ? std::max(of_input, read) : read;
      if (with_node[i] && reaches) reaches_loss[input.index()] = true;
    }
  }
  if (held.empty()) return;
  const std::vector<NodeId> nodes = last_nodes(graph_, model_.operators.size());
  for (const auto& [op, last] : held) {
    const NodeId node = nodes[last.index()];
    if (!node.valid()) continue;  // nothing has run yet that could hold it
    std::vector<StorageId>& holds = graph_.nodes[node.index()].holds;
    for (const Saved& saved : saved_[op.index()]) holds.push_back(saved.view.storage);
    std::ranges::sort(holds);
    holds.erase(std::unique(holds.begin(), holds.end()), holds.end());
  }
}

}  // namespace stowage
