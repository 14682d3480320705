// What the usual training script keeps alive beside what PyTorch needs.
//
// It has a micro-batch's inputs in variables until the next one's are loaded, `output` and `loss`
// until the next micro-batch's, or the next step's, replace them. A model that makes the loss
// itself (transformers, given labels) returns both at once, after the loss. backward() keeps the
// gradient that it starts from.
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

struct PhaseEnds {
  NodeId first, forward, loss, backward;  // the first node, and the last of each phase
};

std::vector<PhaseEnds> phase_ends(const StepGraph& graph) {
  std::vector<PhaseEnds> ends(static_cast<std::size_t>(graph.settings.micro_batches));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    if (node.phase == Phase::update) continue;
    PhaseEnds& end = ends[static_cast<std::size_t>(node.micro_batch)];
    const NodeId id = NodeId::of(i);
    if (!end.first.valid()) end.first = id;
    if (node.phase == Phase::forward) end.forward = id;
    if (node.phase == Phase::loss) end.loss = id;
    if (node.phase == Phase::backward) end.backward = id;
  }
  return ends;
}

}  // namespace

// `assigned`: after which node each micro-batch's variable has its value.
void StepBuilder::keep_result(StorageId id, std::size_t micro_batch,
                              const std::vector<NodeId>& assigned) {
  if (!id.valid()) return;
  Storage& storage = graph_.storages[id.index()];
  if (storage.persistence != Persistence::transient) return;
  const bool last = micro_batch + 1 == assigned.size();
  const NodeId replaced = assigned[last ? 0 : micro_batch + 1];
  if (!replaced.valid()) return;
  if (last) {
    storage.replaced_after = replaced;
  } else {
    graph_.nodes[replaced.index()].holds.push_back(id);
  }
}

void StepBuilder::keep_script_variables() {
  const std::vector<PhaseEnds> ends = phase_ends(graph_);
  std::vector<NodeId> forwards, outputs, losses;
  for (const PhaseEnds& end : ends) {
    forwards.push_back(end.forward);
    outputs.push_back(model_.loss_in_model && end.loss.valid() ? end.loss : end.forward);
    losses.push_back(end.loss);
  }
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const ScriptVariables& variables = variables_[i];
    for (const StorageId other : variables.other_outputs) keep_result(other, i, forwards);
    keep_result(variables.output, i, outputs);
    keep_result(variables.loss, i, losses);
    const NodeId last = ends[i].backward.valid() ? ends[i].backward : ends[i].forward;
    if (!last.valid()) continue;
    std::vector<StorageId>& holds = graph_.nodes[last.index()].holds;
    if (variables.first_gradient.valid()) holds.push_back(variables.first_gradient);
    for (const StorageId input : variables.inputs) {
      Storage& storage = graph_.storages[input.index()];
      storage.held_to_end = i + 1 == variables_.size();
      if (!storage.held_to_end) holds.push_back(input);
      if (i > 0 && storage.persistence == Persistence::from_host) {
        storage.loaded_before = ends[i].first;
      }
    }
  }
}

}  // namespace stowage
