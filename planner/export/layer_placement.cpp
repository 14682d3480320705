#include "planner/export/layer_placement.hpp"

#include <algorithm>
#include <set>

#include "estimator/base/live_sum.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

Device device_at(const Plan& plan, std::size_t node) { return device_of(plan, plan.nodes[node]); }

std::vector<StorageId> touched_by(const KernelNode& node) {
  std::vector<StorageId> touched(node.holds);
  touched.insert(touched.end(), node.temporaries.begin(), node.temporaries.end());
  for (const TensorView& view : node.reads) touched.push_back(view.storage);
  for (const TensorView& view : node.writes) touched.push_back(view.storage);
  return touched;
}

}  // namespace

LayerPlacement layer_placement(const Plan& plan) {
  const StepGraph& graph = *plan.step.graph;
  LayerPlacement found;
  std::map<std::string, Device> forward;
  std::set<std::string> split, backward;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    const std::string layer(graph.layer(node.op));
    if (layer.empty() || node.phase == Phase::update) continue;
    const Device device = device_at(plan, i);
    if (node.phase == Phase::backward) {
      const auto placed = forward.find(layer);
      if (placed != forward.end() && placed->second != device) backward.insert(layer);
      continue;
    }
    const auto [placed, is_new] = forward.emplace(layer, device);
    if (is_new) {
      found.layers.emplace_back(layer, device);
    } else if (placed->second != device) {
      split.insert(layer);
    }
  }
  found.split.assign(split.begin(), split.end());
  found.backward.assign(backward.begin(), backward.end());
  return found;
}

std::map<std::string, Device> update_placement(const Plan& plan) {
  const StepGraph& graph = *plan.step.graph;
  std::map<std::string, Device> updates;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    if (node.phase != Phase::update) continue;
    for (const TensorView& view : node.writes) {
      const Storage& storage = graph.storage(view.storage);
      if (storage.storage_class != StorageClass::parameter) continue;
      updates.emplace(storage.name, device_at(plan, i));
    }
  }
  return updates;
}

Bytes peak_without_plan(const Plan& plan, const std::vector<bool>& resident) {
  const StepGraph& graph = *plan.step.graph;
  const auto steps = static_cast<std::int32_t>(graph.nodes.size());
  std::vector<StepRange> lives(graph.storages.size());
  LiveSum live(steps);
  for (std::int32_t step = 0; step < steps; ++step) {
    if (device_at(plan, static_cast<std::size_t>(step)) != Device::gpu) continue;
    const KernelNode& node = graph.nodes[static_cast<std::size_t>(step)];
    std::set<StorageId> visiting;
    for (const StorageId id : touched_by(node)) {
      const bool stays = graph.storage(id).persistence != Persistence::persistent;
      StepRange& life = lives[id.index()];
      if (stays) {
        life = life.empty() ? StepRange::single(step) : StepRange{life.begin, step + 1};
      } else if (!resident[id.index()]) {
        visiting.insert(id);
      }
    }
    for (const StorageId id : visiting) live.add(StepRange::single(step), plan.bytes(id));
    live.add(StepRange::single(step), plan.nodes[static_cast<std::size_t>(step)].workspace);
  }
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const StorageId id{static_cast<std::int32_t>(i)};
    const bool persists = graph.storages[i].persistence == Persistence::persistent;
    if (persists && resident[i]) live.add({0, steps}, plan.bytes(id));
    if (!persists) live.add(lives[i], plan.bytes(id));
  }
  return peak(std::move(live).by_step()).bytes;
}

}  // namespace stowage
