// What the usual training script keeps alive beside what PyTorch needs.
//
// It has the inputs in variables until the next ones are loaded, `output` and `loss` until the next
// step's replace them. A model that makes the loss itself (transformers, given labels) returns both
// at once, after the loss. backward() keeps the gradient that it starts from.
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

struct PhaseEnds {
  NodeId forward, loss, backward;  // the last node of each
};

PhaseEnds phase_ends(const StepGraph& graph) {
  PhaseEnds end;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeId id = NodeId::of(i);
    switch (graph.nodes[i].phase) {
      case Phase::forward:
        end.forward = id;
        break;
      case Phase::loss:
        end.loss = id;
        break;
      case Phase::backward:
        end.backward = id;
        break;
      case Phase::update:
        break;
    }
  }
  return end;
}

}  // namespace

void StepBuilder::hold_to_end(StorageId id) {
  graph_.script_holds.update(id, [](ScriptHold& hold) { hold.held_to_end = true; });
}

void StepBuilder::keep_result(StorageId id, NodeId assigned_after) {
  if (!id.valid() || !assigned_after.valid()) return;
  if (graph_.storage(id).persistence != Persistence::transient) return;
  graph_.script_holds.update(id, [&](ScriptHold& hold) { hold.replaced_after = assigned_after; });
  graph_.micro_batch.variables.push_back(
      {.kind = ScriptVariable::Kind::result, .storage = id, .assigned_after = assigned_after});
}

void StepBuilder::keep_script_variables() {
  const PhaseEnds end = phase_ends(graph_);
  const bool with_loss = model_.loss_in_model && end.loss.valid();
  if (model_.releases_output && end.loss.valid()) {
    std::vector<StorageId>& holds = graph_.nodes[end.loss.index()].holds;
    for (const StorageId other : variables_.other_outputs) holds.push_back(other);
    if (variables_.output.valid()) holds.push_back(variables_.output);
  } else {
    for (const StorageId other : variables_.other_outputs) keep_result(other, end.forward);
    keep_result(variables_.output, with_loss ? end.loss : end.forward);
  }
  keep_result(variables_.loss, end.loss);
  for (const StorageId id : variables_.kept_by_graph) keep_result(id, end.loss);  // loss.grad_fn
  const NodeId last = end.backward.valid() ? end.backward : end.forward;
  if (!last.valid()) return;
  std::vector<ScriptVariable>& variables = graph_.micro_batch.variables;
  if (variables_.first_gradient.valid()) {
    graph_.nodes[last.index()].holds.push_back(variables_.first_gradient);
    variables.push_back(
        {.kind = ScriptVariable::Kind::first_gradient, .storage = variables_.first_gradient});
  }
  for (const StorageId input : variables_.inputs) {
    hold_to_end(input);
    variables.push_back({.kind = ScriptVariable::Kind::input, .storage = input});
  }
}

}  // namespace stowage
