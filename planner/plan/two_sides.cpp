#include "planner/plan/two_sides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace stowage {
namespace {

std::optional<MemoryId> only_memory(const Machine& machine, MemoryKind kind) {
  std::optional<MemoryId> found;
  for (std::size_t i = 0; i < machine.memories.size(); ++i) {
    if (machine.memories[i].kind != kind) continue;
    if (found) return std::nullopt;
    found = MemoryId::of(i);
  }
  return found;
}

std::string processor_mismatch(const Machine& machine, ProcessorKind kind, MemoryId memory) {
  const auto is_one = [&](const Processor& processor) { return processor.kind == kind; };
  const auto one = std::find_if(machine.processors.begin(), machine.processors.end(), is_one);
  if (std::count_if(machine.processors.begin(), machine.processors.end(), is_one) != 1) {
    return fmt::format("there is not exactly one {} among the processors", to_string(kind));
  }
  if (one->memory == memory) return {};
  return fmt::format("'{}' does not compute in {} memory", one->name,
                     to_string(machine.memory(memory).kind));
}

bool is_link(const Link& link, MemoryId from, MemoryId to) {
  return link.from == from && link.to == to;
}

}  // namespace

std::string two_sides_mismatch(const Machine& machine) {
  const auto device = only_memory(machine, MemoryKind::device);
  const auto pinned = only_memory(machine, MemoryKind::pinned);
  if (!device || !pinned) return "there is not exactly one device and one pinned memory";
  const auto is_pageable = [](const Memory& m) { return m.kind == MemoryKind::pageable; };
  if (std::ranges::count_if(machine.memories, is_pageable) > 1) {
    return "there is more than one pageable memory";
  }
  if (machine.processors.size() != 2) return "there are not exactly two processors";
  for (const auto& [kind, memory] :
       {std::pair(ProcessorKind::gpu, *device), std::pair(ProcessorKind::cpu, *pinned)}) {
    if (std::string why = processor_mismatch(machine, kind, memory); !why.empty()) return why;
  }
  const bool there_and_back =
      machine.links.size() == 2 && ((is_link(machine.links[0], *pinned, *device) &&
                                     is_link(machine.links[1], *device, *pinned)) ||
                                    (is_link(machine.links[0], *device, *pinned) &&
                                     is_link(machine.links[1], *pinned, *device)));
  return there_and_back ? "" : "there is not exactly one link each way between the two memories";
}

Device device_of(const Plan& plan, const PlannedNode& node) {
  return plan.machine.processor(node.processor).kind == ProcessorKind::gpu ? Device::gpu
                                                                           : Device::cpu;
}

std::vector<StepRange> cpu_windows(const Plan& plan) {
  std::vector<StepRange> windows(plan.nodes.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (device_of(plan, plan.nodes[i]) == Device::cpu) windows[i] = window_of(plan, NodeId::of(i));
  }
  return windows;
}

std::vector<bool> nodes_beside_gpu(const Plan& plan) {
  std::vector<std::int32_t> before{0};  // the GPU's nodes before each
  for (const PlannedNode& node : plan.nodes) {
    before.push_back(before.back() + (device_of(plan, node) == Device::gpu ? 1 : 0));
  }
  const std::vector<StepRange> windows = cpu_windows(plan);
  std::vector<bool> beside;
  beside.reserve(windows.size());
  for (const StepRange& window : windows) {
    beside.push_back(!window.empty() && before[static_cast<std::size_t>(window.end)] >
                                            before[static_cast<std::size_t>(window.begin)]);
  }
  return beside;
}

Direction direction_of(const Plan& plan, const Transfer& transfer) {
  const MemoryId to = plan.machine.link(transfer.link).to;
  return plan.machine.memory(to).kind == MemoryKind::device ? Direction::h2d : Direction::d2h;
}

const std::vector<Residence>& residences_in(const Plan& plan, MemoryKind kind) {
  static const std::vector<Residence> none;
  const auto found = std::ranges::find(plan.machine.memories, kind, &Memory::kind);
  if (found == plan.machine.memories.end()) return none;
  return plan.residences[static_cast<std::size_t>(found - plan.machine.memories.begin())];
}

std::vector<Residence> residences_on(const Plan& plan, Device side) {
  if (side == Device::gpu) return residences_in(plan, MemoryKind::device);
  std::vector<Residence> all = residences_in(plan, MemoryKind::pinned);
  for (Residence residence : residences_in(plan, MemoryKind::pageable)) {
    residence.offset += plan.totals.host_peak;
    all.push_back(residence);
  }
  return all;
}

std::vector<bool> resident_throughout(const Plan& plan) {
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  std::vector<bool> resident(plan.step.graph->storages.size());
  for (const Residence& residence : residences_in(plan, MemoryKind::device)) {
    if (residence.steps == StepRange{0, steps}) resident[residence.storage.index()] = true;
  }
  return resident;
}

}  // namespace stowage
