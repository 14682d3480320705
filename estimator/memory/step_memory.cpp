#include "estimator/memory/step_memory.hpp"

#include <algorithm>

#include "estimator/memory/partition.hpp"

namespace stowage {

namespace {

StorageUse use_of(const Storage& storage, const ScriptHold& hold, const MemoryRules& rules) {
  StorageUse use;
  const bool not_yet =
      rules.step == StepNumber::first && !storage.before_first_step &&
      (storage.storage_class == StorageClass::optimizer_state || hold.first_made_by.valid());
  use.whole_step = storage.persistence == Persistence::persistent && !not_yet;
  use.from_start = storage.persistence == Persistence::from_host && !hold.loaded_before.valid();
  use.to_end = hold.outlives_step() || not_yet;
  if (hold.replaced_after.valid() && rules.step == StepNumber::steady) {
    use.previous_until = hold.replaced_after.value + 1;
  }
  return use;
}

template <typename Take>
void for_each_workspace(const SizedStep& step, const MemoryRules& rules, Take take) {
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    if (step.engines[i].empty()) continue;
    const std::size_t chosen = rules.engine.empty() ? 0 : static_cast<std::size_t>(rules.engine[i]);
    const Bytes bytes = step.engines[i][chosen].workspace;
    if (bytes == Bytes()) continue;
    take({.storage_class = StorageClass::workspace,
          .node = NodeId::of(i),
          .op = step.graph->nodes[i].op,
          .exact = bytes},
         {.bytes = round_up(bytes, rules.granularity), .touches = {static_cast<std::int32_t>(i)}});
  }
}

/// The first and the last node of these phases; none where the step has none of them.
Touches touches_of(const StepGraph& graph, PhaseRange range) {
  Touches ends;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Phase phase = graph.nodes[i].phase;
    if (range.first <= phase && phase <= range.last) ends.push_back(static_cast<std::int32_t>(i));
  }
  return ends;
}

// A gradient of which each GPU keeps a share is whole while it is made.
template <typename Take>
void for_each_whole_gradient(const SizedStep& step, const MemoryRules& rules,
                             const std::vector<Touches>& touches, Take take) {
  if (!step.graph->settings.parallel.shares_gradients()) return;
  const std::vector<bool> is_gradient = parameter_gradients(*step.graph);
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    const Storage& storage = step.graph->storages[i];
    if (!is_gradient[i] || touches[i].empty()) continue;
    const Bytes rest = Bytes(storage.bytes.at(step.batch)) - step.storage_bytes[i];
    take({.storage_class = StorageClass::gradient,
          .storage = StorageId::of(i),
          .op = storage.op,
          .exact = rest},
         {.bytes = round_up(rest, rules.granularity), .touches = {touches[i].front()}});
  }
}

template <typename Take>
void take_entries(const SizedStep& step, const MemoryRules& rules,
                  const std::vector<Touches>& touches, Take take) {
  const StepGraph& graph = *step.graph;
  const bool keeps_gradients = graph.settings.parallel.shares_parameters();
  const std::vector<bool> is_gradient =
      keeps_gradients ? parameter_gradients(graph) : std::vector<bool>();
  ScriptHolds::Cursor holds(graph.script_holds);
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const Storage& storage = graph.storages[i];
    const ScriptHold& hold = holds.advance_to(StorageId::of(i));
    StorageUse use = use_of(storage, hold, rules);
    const bool loaded =
        storage.persistence == Persistence::persistent && graph.kernel_set().loads_untouched;
    if (touches[i].empty() && !loaded) continue;
    use.bytes = round_up(step.storage_bytes[i], rules.granularity);
    use.touches = touches[i];
    // ZeRO 3 has its share of the gradients in one buffer, which is made once.
    if (keeps_gradients && is_gradient[i]) use.whole_step = true;
    if (hold.loaded_before.valid()) {
      use.touches = {hold.loaded_before.value, use.touches.back()};
    }
    if (rules.step == StepNumber::first && hold.first_made_by.valid()) {
      // The node's other argument becomes the storage: it is there from then on.
      const std::int32_t next = hold.first_made_by.value + 1;
      use.touches = {next, std::max(next, use.touches.back())};
    }
    take({.storage_class = storage.storage_class,
          .storage = StorageId::of(i),
          .op = storage.op,
          .exact = step.storage_bytes[i]},
         use);
  }
  for_each_whole_gradient(step, rules, touches, take);
  if (rules.with_workspaces) for_each_workspace(step, rules, take);
  for (std::size_t i = 0; i < rules.buffers.size(); ++i) {
    const RuntimeBuffer& buffer = rules.buffers[i];
    StorageUse use{.bytes = round_up(buffer.bytes, rules.granularity), .whole_step = true};
    if (buffer.during) {
      use.whole_step = false;
      use.touches = touches_of(graph, *buffer.during);
    }
    take({.storage_class = buffer.storage_class,
          .buffer = static_cast<std::int32_t>(i),
          .exact = buffer.bytes},
         use);
  }
}

}  // namespace

std::vector<Touches> storage_touches(const StepGraph& graph) {
  std::vector<Touches> touches(graph.storages.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto step = static_cast<std::int32_t>(i);
    const KernelNode& node = graph.nodes[i];
    for (const TensorView& view : node.reads) touches[view.storage.index()].push_back(step);
    for (const TensorView& view : node.writes) touches[view.storage.index()].push_back(step);
    for (const StorageId id : node.temporaries) touches[id.index()].push_back(step);
    for (const StorageId id : node.holds) touches[id.index()].push_back(step);
  }
  return touches;
}

StepMemory step_memory(const SizedStep& step, const MemoryRules& rules) {
  return step_memory(step, rules, storage_touches(*step.graph));
}

StepMemory step_memory(const SizedStep& step, const MemoryRules& rules,
                       const std::vector<Touches>& touches) {
  const StepGraph& graph = *step.graph;
  StepMemory memory{.graph = step.graph,
                    .buffers = rules.buffers,
                    .steps = static_cast<std::int32_t>(graph.nodes.size())};
  memory.entries.reserve(graph.storages.size());
  memory.uses.reserve(graph.storages.size());
  take_entries(step, rules, touches, [&](const MemoryEntry& entry, const StorageUse& use) {
    memory.entries.push_back(entry);
    memory.uses.push_back(use);
  });
  return memory;
}

std::vector<StorageUse> storage_uses(const SizedStep& step, const MemoryRules& rules,
                                     const std::vector<Touches>& touches) {
  std::vector<StorageUse> uses;
  uses.reserve(step.graph->storages.size() + rules.buffers.size());
  take_entries(step, rules, touches,
               [&](const MemoryEntry&, const StorageUse& use) { uses.push_back(use); });
  return uses;
}

std::vector<Bytes> live_bytes(const SizedStep& step, const MemoryRules& rules,
                              const std::vector<Touches>& touches) {
  LiveSum sum(static_cast<std::int32_t>(step.graph->nodes.size()));
  take_entries(step, rules, touches,
               [&](const MemoryEntry&, const StorageUse& use) { add_use(sum, use); });
  return std::move(sum).by_step();
}

void for_each_entry(const SizedStep& step, const MemoryRules& rules,
                    const std::vector<Touches>& touches,
                    const std::function<void(const MemoryEntry&, const StorageUse&)>& take) {
  take_entries(step, rules, touches, take);
}

}  // namespace stowage
