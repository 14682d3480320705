#include "estimator/rewrite/renumber.hpp"

#include <utility>

namespace stowage {

void renumber_nodes(StepGraph& step, const std::vector<NodeId>& place) {
  const auto move = [&](NodeId& id) {
    if (id.valid()) id = place[id.index()];
  };
  step.script_holds.renumber_nodes(move);
  MicroBatch& part = step.micro_batch;
  move(part.first_node);
  move(part.end_node);
  for (NodeId& id : part.first_only) move(id);
  for (GradientArrival& arrival : part.arrivals) move(arrival.after);
  for (ScriptVariable& variable : part.variables) move(variable.assigned_after);
  for (SavedTensor& saved : step.saved) {
    if (!saved.call) continue;
    move(saved.call->packed_after);
    move(saved.call->unpacked_before);
    move(saved.call->held_until);
  }
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

namespace {

/// Visits everything that refers to storages, except for the bounds of the micro-batch's storages.
template <typename Move>
void for_each_storage_id(StepGraph& step, Move move) {
  const auto move_views = [&](std::vector<TensorView>& views) {
    for (TensorView& view : views) move(view.storage);
  };
  for (KernelNode& node : step.nodes) {
    move_views(node.reads);
    move_views(node.writes);
    for (StorageId& id : node.temporaries) move(id);
    for (StorageId& id : node.holds) move(id);
  }
  for (SavedTensor& saved : step.saved) {
    move(saved.storage);
    if (saved.call) move(saved.call->view.storage);
  }
  for (auto* views : {&step.inputs, &step.losses, &step.gradients}) move_views(*views);
  move(step.output.storage);
  MicroBatch& part = step.micro_batch;
  for (GradientArrival& arrival : part.arrivals) move(arrival.gradient.storage);
  for (ScriptVariable& variable : part.variables) move(variable.storage);
}

}  // namespace

void move_storages(StepGraph& step, const std::vector<StorageId>& place) {
  std::vector<Storage> moved(step.storages.size());
  for (std::size_t i = 0; i < place.size(); ++i) {
    moved[place[i].index()] = std::move(step.storages[i]);
  }
  step.storages = std::move(moved);
  ScriptHolds holds;
  for (const auto& [storage, hold] : step.script_holds) holds.set(place[storage.index()], hold);
  step.script_holds = std::move(holds);
  for_each_storage_id(step, [&](StorageId& id) {
    if (id.valid()) id = place[id.index()];
  });
}

void into_micro_batch(StepGraph& step, std::size_t added) {
  if (!step.micro_batch.end_storage.valid()) return;
  const std::size_t end = step.micro_batch.end_storage.index();
  const std::size_t count = step.storages.size() - added;
  std::vector<StorageId> place;
  place.reserve(step.storages.size());
  for (std::size_t i = 0; i < step.storages.size(); ++i) {
    place.push_back(StorageId::of(i >= added ? end + (i - added) : i < end ? i : i + count));
  }
  move_storages(step, place);
  step.micro_batch.end_storage = StorageId::of(end + count);
}

void drop_storages(StepGraph& step, const std::vector<bool>& gone) {
  std::vector<StorageId> place(step.storages.size());
  std::vector<Storage> left;
  left.reserve(step.storages.size());
  ScriptHolds holds;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (gone[s]) continue;
    place[s] = StorageId::of(left.size());
    left.push_back(std::move(step.storages[s]));
    if (const ScriptHold& hold = step.script_holds.of(StorageId::of(s)); hold != ScriptHold()) {
      holds.set(place[s], hold);
    }
  }
  step.storages = std::move(left);
  step.script_holds = std::move(holds);
  std::erase_if(step.saved, [&](const SavedTensor& saved) { return gone[saved.storage.index()]; });
  for (TensorView& gradient : step.gradients) {
    if (gradient.storage.valid() && gone[gradient.storage.index()]) gradient = {};
  }
  for_each_storage_id(step, [&](StorageId& id) {
    if (id.valid()) id = place[id.index()];
  });
}

void join_storages(StepGraph& step, const std::vector<StorageId>& into) {
  std::vector<StorageId> before;  // by storage, and one past the last: how many are left before it
  before.reserve(into.size() + 1);
  std::vector<Storage> left;
  left.reserve(into.size());
  for (std::size_t s = 0; s < into.size(); ++s) {
    before.push_back(StorageId::of(left.size()));
    if (into[s].index() == s) left.push_back(std::move(step.storages[s]));
  }
  before.push_back(StorageId::of(left.size()));
  step.storages = std::move(left);
  ScriptHolds holds;
  for (const auto& [storage, hold] : step.script_holds) {
    if (into[storage.index()] == storage) holds.set(before[storage.index()], hold);
  }
  step.script_holds = std::move(holds);
  const auto move = [&](StorageId& id) {
    if (id.valid()) id = before[into[id.index()].index()];
  };
  for_each_storage_id(step, move);
  MicroBatch& part = step.micro_batch;
  for (StorageId* const bound : {&part.first_storage, &part.end_storage}) {
    if (bound->valid()) *bound = before[bound->index()];
  }
}

}  // namespace stowage
