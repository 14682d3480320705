// Checkpointed regions (torch/utils/checkpoint.py, use_reentrant=False).
//
// Forward runs as ever, but what a region's operators save is forgotten; what enters the region is
// kept until the last of its operators has run its backward. When the first backward needs
// something that was saved, the region's forward runs again, with the dropout masks that it had
// (their seeds belong to the operator) and under an autocast cache of its own, up to what was saved
// last: PyTorch stops there in the middle of the operator, so that a linear layer that ends a
// region, and saves its input alone, is not multiplied again. Running statistics are updated once
// by our executor (PyTorch: twice).
#include <algorithm>

#include "estimator/step/step_builder.hpp"

namespace stowage {

void StepBuilder::find_regions() {
  saves_.assign(model_.operators.size(), false);
  if (graph_.settings.mode != Mode::train) return;
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    const int region = model_.operators[i].region;
    if (region < 0) continue;
    if (static_cast<std::size_t>(region) >= regions_.size()) {
      regions_.resize(static_cast<std::size_t>(region) + 1);
    }
    regions_[static_cast<std::size_t>(region)].operators.push_back(OperatorId::of(i));
  }
}

StepBuilder::Region* StepBuilder::region_of(OperatorId op) {
  const int region = model_.op(op).region;
  return region < 0 || regions_.empty() ? nullptr : &regions_[static_cast<std::size_t>(region)];
}

// What enters must outlast the region's forward, so that nothing in it may work in its place.
void StepBuilder::keep_what_enters(OperatorId op) {
  Region* region = region_of(op);
  if (region == nullptr || recomputing_) return;
  for (const TensorId input : model_.op(op).inputs) {
    const OperatorId producer = model_.tensor(input).producer;
    if (producer.valid() && region_of(producer) == region) continue;
    const StorageId storage = values_[input.index()].storage;
    read_again_[storage.index()] = true;
    std::vector<StorageId>& entering = region->entering;
    if (std::find(entering.begin(), entering.end(), storage) != entering.end()) continue;
    entering.push_back(storage);
  }
}

// Whether what the operator saves now is not kept.
bool StepBuilder::forgets(OperatorId op) {
  Region* region = region_of(op);
  if (region == nullptr || recomputing_) return false;
  saves_[op.index()] = true;
  region->last_saver = op;
  if (!region->first_saver.valid()) region->first_saver = op;
  return true;
}

void StepBuilder::recompute_before(OperatorId op) {
  Region* region = region_of(op);
  if (region == nullptr || region->recomputed || !saves_[op.index()]) return;
  region->recomputed = true;
  recomputing_ = true;
  for (const OperatorId again : region->operators) {
    if (again.value > region->last_saver.value) break;
    make_casts(again);
    if (again == region->last_saver) {
      run_until_saved(again);
    } else {
      run_forward_rule(again);
    }
  }
  leave_autocast();
  recomputing_ = false;
}

// Takes back the kernel calls at the end of the operator's forward that make nothing it saved, and
// the outputs that are then made by nobody.
void StepBuilder::run_until_saved(OperatorId op) {
  const std::size_t first_node = graph_.nodes.size();
  const std::size_t first_storage = graph_.storages.size();
  const std::vector<TensorId>& outputs = model_.op(op).outputs;
  std::vector<TensorView> before;
  for (const TensorId output : outputs) before.push_back(values_[output.index()]);
  run_forward_rule(op);
  const auto is_saved = [&](StorageId id) {
    return std::any_of(saved_[op.index()].begin(), saved_[op.index()].end(),
                       [&](const Saved& saved) { return saved.view.storage == id; });
  };
  while (graph_.nodes.size() > first_node) {
    const KernelNode& last = graph_.nodes.back();
    const auto makes_saved = [&](const TensorView& view) { return is_saved(view.storage); };
    if (std::any_of(last.writes.begin(), last.writes.end(), makes_saved)) return;
    if (last.convolution >= 0) graph_.convolutions.pop_back();
    graph_.nodes.pop_back();
    node_names_.pop_back();
  }
  while (graph_.storages.size() > first_storage) {
    const StorageId last = StorageId::of(graph_.storages.size() - 1);
    const auto output = std::find_if(outputs.begin(), outputs.end(), [&](TensorId id) {
      return values_[id.index()].storage == last;
    });
    if (output == outputs.end() || is_saved(last)) return;
    values_[output->index()] = before[static_cast<std::size_t>(output - outputs.begin())];
    graph_.storages.pop_back();
    storage_names_.pop_back();
    holders_.pop_back();
    read_again_.pop_back();
  }
}

void StepBuilder::release_region(OperatorId op) {
  const Region* region = region_of(op);
  if (region == nullptr || region->first_saver != op) return;
  if (graph_.settings.kernels == KernelSet::stowage) return;
  std::vector<StorageId>& holds = graph_.nodes.back().holds;
  holds.insert(holds.end(), region->entering.begin(), region->entering.end());
}

}  // namespace stowage
