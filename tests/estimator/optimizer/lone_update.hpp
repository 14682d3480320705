// The optimizer's part of a step alone: parameters and gradients weigh nothing, so that what is
// live is what the optimizer adds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
};

inline StepGraph lone_update(const std::vector<NamedShape>& parameters, DataType type,
                             const OptimizerSettings& optimizer,
                             KernelSet kernels = KernelSet::pytorch) {
  ModelGraph model;
  StepGraph graph;
  graph.settings = {.kernels = kernels, .optimizer = optimizer};
  std::vector<TensorView> views;
  const auto add = [&](std::string name, StorageClass storage_class, Persistence persistence) {
    graph.storages.push_back({.name = std::move(name),
                              .storage_class = storage_class,
                              .persistence = persistence,
                              .bytes = 0});
    return StorageId::of(graph.storages.size() - 1);
  };
  for (const NamedShape& parameter : parameters) {
    const Shape shape(parameter.shape.begin(), parameter.shape.end());
    model.parameters.push_back({.name = parameter.name, .type = {shape, type}});
    views.push_back(contiguous_view(
        add(parameter.name, StorageClass::parameter, Persistence::persistent), shape, type));
    graph.gradients.push_back(contiguous_view(
        add(parameter.name + ".grad", StorageClass::gradient, Persistence::transient), shape,
        type));
  }
  lower_update(graph, model, views);
  return graph;
}

/// Of the optimizer's state; or of what is made with the optimizer alone.
inline std::int64_t state_bytes(const StepGraph& graph, bool at_construction) {
  std::int64_t bytes = 0;
  for (const Storage& storage : graph.storages) {
    if (storage.storage_class != StorageClass::optimizer_state) continue;
    if (storage.before_first_step || !at_construction) bytes += storage.bytes.constant;
  }
  return bytes;
}

inline std::int64_t update_peak(const StepGraph& graph, StepNumber number) {
  const auto step = size_storages(std::make_shared<const StepGraph>(graph), 1);
  const StepMemory memory = step_memory(step.value(), {.step = number});
  return peak(live_bytes(lifetimes(memory.uses, memory.steps), memory.steps)).bytes.count();
}

}  // namespace stowage
