#include "estimator/rewrite/renumber.hpp"

#include <utility>

namespace stowage {

void renumber_nodes(StepGraph& step, const std::vector<NodeId>& place) {
  const auto move = [&](NodeId& id) {
    if (id.valid()) id = place[id.index()];
  };
  for (Storage& storage : step.storages) {
    move(storage.loaded_before);
    move(storage.first_made_by);
    move(storage.replaced_after);
  }
  MicroBatch& part = step.micro_batch;
  move(part.first_node);
  move(part.end_node);
  for (NodeId& id : part.first_only) move(id);
  for (GradientArrival& arrival : part.arrivals) move(arrival.after);
  for (ScriptVariable& variable : part.variables) move(variable.assigned_after);
}

void renumber_convolutions(StepGraph& step) {
  std::vector<ConvolutionCall> calls;
  calls.reserve(step.convolutions.size());
  for (KernelNode& node : step.nodes) {
    if (node.convolution < 0) continue;
    calls.push_back(step.convolutions[static_cast<std::size_t>(node.convolution)]);
    node.convolution = static_cast<int>(calls.size()) - 1;
  }
  step.convolutions = std::move(calls);
}

}  // namespace stowage
