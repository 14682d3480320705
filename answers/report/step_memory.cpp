#include "answers/report/step_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimator/base/live_sum.hpp"
#include "estimator/runtime/runtime_process.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

std::vector<LiveTensor> live_tensors(const StepMemory& memory) {
  std::vector<LiveTensor> tensors;
  tensors.reserve(memory.uses.size());
  for (const Lifetime& lifetime : lifetimes(memory.uses, memory.steps)) {
    const auto use = static_cast<std::size_t>(lifetime.use);
    if (lifetime.steps.empty() || lifetime.bytes == Bytes()) continue;
    tensors.push_back({memory.entries[use], lifetime.steps, lifetime.bytes});
  }
  return tensors;
}

/// Fills in what follows from the tensors: the sums and their peak.
void add_up(MemoryOverStep& memory, std::int32_t nodes) {
  std::vector<LiveSum> sums(memory.by_class.size(), LiveSum(nodes));
  LiveSum all(nodes);
  for (const LiveTensor& tensor : memory.tensors) {
    sums[static_cast<std::size_t>(tensor.entry.storage_class)].add(tensor.nodes, tensor.bytes);
    all.add(tensor.nodes, tensor.bytes);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    memory.by_class[i] = std::move(sums[i]).by_step();
  }
  memory.live = std::move(all).by_step();
  memory.peak = peak(memory.live).step;
}

LiveTensor tensor_of(const Plan& plan, const Residence& residence) {
  const Storage& storage = plan.storage(residence.storage);
  return {.entry = {.storage_class = storage.storage_class,
                    .storage = residence.storage,
                    .op = storage.op,
                    .exact = plan.bytes(residence.storage)},
          .nodes = residence.steps,
          .bytes = plan.bytes(residence.storage)};
}

LiveTensor workspace_of(const Plan& plan, NodeId node) {
  const Bytes bytes = plan.nodes[node.index()].workspace;
  return {.entry = {.storage_class = StorageClass::workspace,
                    .node = node,
                    .op = plan.kernel(node).op,
                    .exact = bytes},
          .nodes = StepRange::single(node.value),
          .bytes = bytes};
}

Bytes set_aside(const Plan& plan, MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return plan.totals.arena;
    case MemoryKind::pinned:
      return plan.totals.host_peak;
    case MemoryKind::pageable:
      return plan.totals.pageable_peak;
  }
  return {};
}

}  // namespace

Bytes MemoryOverStep::peak_bytes() const {
  return live.empty() ? Bytes() : live[static_cast<std::size_t>(peak)];
}

MemoryOverStep memory_over_step(const SizedStep& step, const Card& card,
                                const CheckSettings& settings, const RuntimeRun& run) {
  const StepOnCard on_card(step, card, settings);
  const StepMemory uses = step_memory(on_card.step,
                                      {.granularity = runtime_granularity(settings.runtime),
                                       .engine = run.process().engine,
                                       .buffers = on_card.buffers},
                                      on_card.touches);
  MemoryOverStep memory{
      .graph = step.graph, .buffers = on_card.buffers, .tensors = live_tensors(uses)};
  add_up(memory, uses.steps);
  const auto by_node = process_of(settings.runtime).reserved_by_node;
  if (by_node != nullptr) memory.reserved = by_node(on_card, run);
  if (memory.reserved.empty()) memory.reserved.assign(memory.live.size(), run.process().reserved);
  return memory;
}

MemoryOverStep memory_over_step(const Plan& plan, MemoryKind kind) {
  MemoryOverStep memory{.graph = plan.step.graph};
  for (const Residence& residence : residences_in(plan, kind)) {
    if (plan.bytes(residence.storage) > Bytes())
      memory.tensors.push_back(tensor_of(plan, residence));
  }
  if (kind == MemoryKind::device) {
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      if (plan.nodes[i].workspace > Bytes()) {
        memory.tensors.push_back(workspace_of(plan, NodeId::of(i)));
      }
    }
    std::ranges::stable_sort(memory.tensors, {},
                             [](const LiveTensor& tensor) { return tensor.nodes.begin; });
  }
  add_up(memory, static_cast<std::int32_t>(plan.nodes.size()));
  memory.reserved.assign(memory.live.size(), set_aside(plan, kind));
  return memory;
}

std::string name_of(const MemoryOverStep& memory, const LiveTensor& tensor) {
  const MemoryEntry& entry = tensor.entry;
  if (entry.storage.valid()) return memory.graph->storage(entry.storage).name;
  if (entry.node.valid()) return fmt::format("{} workspace", memory.graph->node(entry.node).name);
  return memory.buffers[static_cast<std::size_t>(entry.buffer)].name;
}

std::string_view layer_of(const MemoryOverStep& memory, const LiveTensor& tensor) {
  return memory.graph->layer(tensor.entry.op);
}

std::string_view place_of(const MemoryOverStep& memory, const LiveTensor& tensor) {
  const OperatorId op = tensor.entry.op;
  return op.valid() ? std::string_view(memory.graph->origins[op.index()].place)
                    : std::string_view();
}

}  // namespace stowage
