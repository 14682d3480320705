#include "estimator/rewrite/sharded_update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

namespace {

/// A model with only what lower_update reads: parameters, here the shards.
ModelGraph model_of_shards(const ModelGraph& model, const std::vector<ShardGroup>& groups) {
  ModelGraph shards;
  shards.name = model.name;
  shards.precision = model.precision;
  shards.parameters = model.parameters;
  for (const ShardGroup& group : groups) {
    for (const ShardedParameter& parameter : group.parameters) {
      shards.parameters[parameter.id.index()].type = {parameter.local, parameter.kept};
    }
  }
  return shards;
}

std::int64_t pinned_bytes(std::int64_t bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
}

void add_host_buffers(StepGraph& step, const std::vector<ShardGroup>& groups) {
  const bool pinned = step.settings.parallel.pinned;
  HostBuffer parameters{.name = "sharded parameters", .pinned = pinned};
  HostBuffer gradients{.name = "sharded gradients", .pinned = pinned};
  for (const ShardGroup& group : groups) {
    for (const ShardedParameter& parameter : group.parameters) {
      const std::int64_t bytes = parameter.shard * element_size(parameter.kept);
      const std::int64_t taken = pinned ? pinned_bytes(bytes) : bytes;
      parameters.bytes += taken;
      if (parameter.trains) gradients.bytes += taken;
    }
  }
  step.host_buffers = {std::move(parameters), std::move(gradients)};
}

// Lowers the update as if it ran on the GPU, to find the state that the CPU keeps for the shards.
std::int64_t state_bytes(const StepGraph& step, const ModelGraph& shards,
                         const std::vector<ShardGroup>& groups,
                         const std::vector<TensorView>& views, std::int64_t& counters) {
  StepGraph update;
  update.settings = step.settings;
  update.settings.optimizer.implementation = OptimizerImplementation::for_loop;
  update.storages = step.storages;
  update.gradients.resize(shards.parameters.size());
  for (const ShardGroup& group : groups) {
    for (const ShardedParameter& parameter : group.parameters) {
      if (parameter.trains) update.gradients[parameter.id.index()] = views[parameter.id.index()];
    }
  }
  lower_update(update, shards, views);
  counters = update.host_state_bytes;
  std::int64_t bytes = 0;
  for (const Storage& storage : update.storages) {
    if (storage.storage_class == StorageClass::optimizer_state) bytes += storage.bytes.constant;
  }
  return bytes;
}

}  // namespace

std::optional<Diagnostic> optimizer_that_needs_whole(const LoweringSettings& settings) {
  const OptimizerRow& row = *find_optimizer(settings.optimizer.name);
  const bool by_element = std::ranges::all_of(row.state, [](const StateTensor& state) {
    return state.shape == StateShape::parameter || state.shape == StateShape::scalar;
  });
  if (by_element && row.shared.empty() && row.source.starts_with("torch.optim") &&
      row.name != "adafactor") {
    return std::nullopt;
  }
  return Diagnostic{.message = fmt::format("FSDP is not sized with {}, which works on whole "
                                           "parameters ({})",
                                           row.name, row.source),
                    .hint = "take one of torch.optim's that work element by element: adamw, sgd"};
}

StepGraph with_sharded_update(StepGraph step, const ModelGraph& model,
                              const std::vector<ShardGroup>& groups,
                              const std::vector<TensorView>& shards) {
  const ModelGraph sharded = model_of_shards(model, groups);
  if (step.settings.parallel.offload == Offload::none) {
    lower_update(step, sharded, shards);
    return step;
  }
  add_host_buffers(step, groups);
  const std::int64_t state = state_bytes(step, sharded, groups, shards, step.host_state_bytes);
  if (state > 0) step.host_buffers.push_back({.name = "optimizer state", .bytes = state});
  return step;
}

}  // namespace stowage
