#include "planner/recompute/checkpoint_segments.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stowage {
namespace {

/// The layers with forward kernels, in the order in which they first run.
std::vector<OperatorId> layers_of(const StepGraph& step) {
  std::vector<OperatorId> layers;
  std::vector<bool> known(step.origins.size(), false);
  for (const KernelNode& node : step.nodes) {
    if (node.phase != Phase::forward || !node.op.valid() || known[node.op.index()]) continue;
    known[node.op.index()] = true;
    layers.push_back(node.op);
  }
  return layers;
}

/// By layer: whether a segment may begin with it.
std::vector<bool> possible_beginnings(const StepGraph& step,
                                      const std::vector<OperatorId>& layers) {
  std::vector<std::size_t> place(step.origins.size(), layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) place[layers[i].index()] = i;
  std::vector<std::size_t> first(step.storages.size(), layers.size()), last(first.size(), 0);
  for (const KernelNode& node : step.nodes) {
    if (node.phase != Phase::forward || !node.op.valid()) continue;
    for (const TensorView& written : node.writes) {
      if (step.storage(written.storage).persistence == Persistence::persistent) continue;
      std::size_t& begin = first[written.storage.index()];
      begin = std::min(begin, place[node.op.index()]);
      last[written.storage.index()] = place[node.op.index()];
    }
  }
  std::vector<bool> possible(layers.size(), true);
  for (std::size_t s = 0; s < first.size(); ++s) {
    for (std::size_t i = first[s]; i < last[s]; ++i) possible[i + 1] = false;
  }
  return possible;
}

}  // namespace

std::vector<CheckpointRegion> sqrt_segments(const StepGraph& step) {
  const std::vector<OperatorId> layers = layers_of(step);
  const std::vector<bool> possible = possible_beginnings(step, layers);
  const auto length = static_cast<std::size_t>(std::ceil(std::sqrt(layers.size())));
  std::vector<CheckpointRegion> regions;
  std::size_t begun = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i == 0 || (i - begun >= length && possible[i])) {
      regions.emplace_back();
      begun = i;
    }
    regions.back().operators.push_back(layers[i]);
  }
  if (!regions.empty()) regions.pop_back();  // its backward comes at once
  return regions;
}

}  // namespace stowage
