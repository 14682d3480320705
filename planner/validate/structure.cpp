// Checks the plan as a table: whether its enumerators, ids, ranges, orders and sizes are such that
// the other checks may index and add without looking again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "estimator/arena/arena.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 61;  // so that two of them can be added
constexpr std::size_t most_entries = std::numeric_limits<std::int32_t>::max() / 2;

bool is_size(Bytes bytes) { return bytes.count() >= 0 && bytes.count() <= most_bytes; }

template <typename Enum>
bool is_enumerator(Enum value, Enum last) {
  return static_cast<std::int64_t>(value) >= 0 && value <= last;
}

bool is_rate(double value) { return std::isfinite(value) && value >= 0; }

bool are_rates(const KernelRates& kernels) {
  return is_rate(kernels.multiprocessors) && std::ranges::all_of(kernels.formats, is_rate) &&
         std::ranges::all_of(kernels.kinds, [](const KindShare& share) {
           return is_rate(share.arithmetic) && is_rate(share.bandwidth);
         });
}

template <typename Row>
bool names_a_row(const std::vector<Row>& rows, std::int32_t id) {
  return id >= 0 && static_cast<std::size_t>(id) < rows.size();
}

void check_machine(const Machine& machine, Violations& wrong) {
  for (const Memory& memory : machine.memories) {
    if (is_enumerator(memory.kind, MemoryKind::pageable)) continue;
    wrong.note([&] { return fmt::format("memory '{}' is of no known kind", memory.name); });
  }
  for (const Processor& processor : machine.processors) {
    if (is_enumerator(processor.kind, ProcessorKind::cpu) &&
        names_a_row(machine.memories, processor.memory.value) && is_rate(processor.flops) &&
        is_rate(processor.bandwidth) && is_rate(processor.launch) &&
        (!processor.kernels || are_rates(*processor.kernels)) &&
        std::ranges::all_of(processor.node_seconds, is_rate)) {
      continue;
    }
    wrong.note([&] { return fmt::format("processor '{}' cannot be", processor.name); });
  }
  for (const Link& link : machine.links) {
    if (names_a_row(machine.memories, link.from.value) &&
        names_a_row(machine.memories, link.to.value) && is_rate(link.bandwidth) &&
        is_rate(link.latency)) {
      continue;
    }
    wrong.note([&] { return fmt::format("link '{}' cannot be", link.name); });
  }
  if (wrong.count > 0) return;
  const std::string mismatch = two_sides_mismatch(machine);
  if (mismatch.empty()) return;
  wrong.note([&] { return "the machine is not one GPU and its host: " + mismatch; });
}

void check_settings(const Plan& plan, Violations& wrong) {
  if (!is_enumerator(plan.pinned, Pinned::all_nodes)) {
    wrong.note([] { return "it is not known which nodes are pinned to the GPU"; });
  }
  const std::pair<const char*, Bytes> sizes[] = {
      {"available", plan.inputs.available},
      {"budget", plan.inputs.budget.bytes},
      {"gpu_peak", plan.totals.gpu_peak},
      {"arena", plan.totals.arena},
      {"host_peak", plan.totals.host_peak},
      {"pageable_peak", plan.totals.pageable_peak},
      {"h2d", plan.totals.h2d},
      {"d2h", plan.totals.d2h},
      {"arena_lower_bound", plan.totals.arena_lower_bound},
      {"pcie_lower_bound", plan.totals.pcie_lower_bound}};
  for (const auto& [name, size] : sizes) {
    if (is_size(size)) continue;
    wrong.note([&, name = name, size = size] {
      return fmt::format("{} is {} bytes", name, size.count());
    });
  }
}

void check_granule(const Plan& plan, Violations& wrong) {
  if (!plan.certificate) return;
  const Bytes granule = plan.certificate->granule;
  if (granule >= Bytes(1) && arena_alignment.count() % granule.count() == 0) return;
  wrong.note([&] {
    return fmt::format("the certificate's granule of {} bytes does not divide the arena's {}",
                       granule.count(), arena_alignment.count());
  });
}

void check_times(const PlanTotals& totals, Violations& wrong) {
  const std::pair<const char*, double> times[] = {
      {"step_lower_bound_seconds", totals.step_lower_bound_seconds.value_or(0)},
      {"cost_seconds", totals.cost_seconds},
      {"cost_lower_bound_seconds", totals.cost_lower_bound_seconds},
      {"all_gpu_cost_seconds", totals.all_gpu_cost_seconds},
      {"step_seconds", totals.step_seconds},
      {"all_gpu_step_seconds", totals.all_gpu_step_seconds}};
  for (const auto& [name, seconds] : times) {
    if (std::isfinite(seconds) && seconds >= 0) continue;
    wrong.note(
        [&, name = name, seconds = seconds] { return fmt::format("{} is {}", name, seconds); });
  }
}

// Checks that the plan's tables are as long as the step's.
void check_tables(const Plan& plan, Violations& wrong) {
  const StepGraph& graph = *plan.step.graph;
  if (graph.nodes.empty()) wrong.note([] { return "there are no nodes"; });
  if (graph.nodes.size() > most_entries || graph.storages.size() > most_entries) {
    wrong.note([] { return "there are more nodes or storages than ids"; });
  }
  if (plan.nodes.size() != graph.nodes.size()) {
    wrong.note([&] {
      return fmt::format("the plan has {} nodes, its step {}", plan.nodes.size(),
                         graph.nodes.size());
    });
  }
  if (plan.step.storage_bytes.size() != graph.storages.size() ||
      plan.step.flops.size() != graph.nodes.size() ||
      plan.step.bytes_moved.size() != graph.nodes.size()) {
    wrong.note([] { return "the step is not sized"; });
  }
  for (const Processor& processor : plan.machine.processors) {
    const std::size_t measured = processor.node_seconds.size();
    if (measured == 0 || measured == graph.nodes.size()) continue;
    wrong.note([&] {
      return fmt::format("processor '{}' has the seconds of {} nodes, the step {} nodes",
                         processor.name, measured, graph.nodes.size());
    });
  }
  if (plan.residences.size() != plan.machine.memories.size()) {
    wrong.note([&] {
      return fmt::format("there are residences in {} memories of {}", plan.residences.size(),
                         plan.machine.memories.size());
    });
  }
}

bool is_pin_table(const std::vector<AppliedPin>& pins, std::size_t reasons) {
  return std::all_of(pins.begin(), pins.end(), [&](const AppliedPin& applied) {
    if (!is_enumerator(applied.pin, Pin::cpu)) return false;
    if (applied.pin == Pin::free) return applied.reason == -1;
    return applied.reason >= 0 && static_cast<std::size_t>(applied.reason) < reasons;
  });
}

void check_pin_tables(const Plan& plan, Violations& wrong) {
  const StepPins& pins = plan.pins;
  const auto is_size_of = [](std::size_t size, std::size_t rows) {
    return size == 0 || size == rows;
  };
  if (!is_size_of(pins.nodes.size(), plan.step.graph->nodes.size()) ||
      !is_size_of(pins.storages.size(), plan.step.graph->storages.size()) ||
      !is_pin_table(pins.nodes, pins.reasons.size()) ||
      !is_pin_table(pins.storages, pins.reasons.size())) {
    wrong.note([] { return "the pins are not those of the step's nodes and storages"; });
  }
}

void check_sizes(const Plan& plan, Violations& wrong) {
  std::int64_t left = most_bytes;  // so that no sum of sizes can leave 64 bits
  for (std::size_t i = 0; i < plan.step.storage_bytes.size(); ++i) {
    const Bytes bytes = plan.step.storage_bytes[i];
    if (!is_size(bytes) || bytes.count() > left) {
      wrong.note([&] {
        return fmt::format("'{}' has {} bytes, with which the sum leaves 61 bits",
                           plan.step.graph->storages[i].name, bytes.count());
      });
      continue;
    }
    left -= bytes.count();
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    const std::string& name = plan.step.graph->nodes[i].name;
    if (!names_a_row(plan.machine.processors, node.processor.value)) {
      wrong.note([&] { return fmt::format("'{}' is on no processor", name); });
    }
    if (!is_size(node.workspace) || !is_size(node.workspace_offset) ||
        node.workspace.count() > left) {
      wrong.note([&] {
        return fmt::format("'{}' has a workspace of {} bytes at {}", name, node.workspace.count(),
                           node.workspace_offset.count());
      });
    }
  }
}

void check_windows(const Plan& plan, Violations& wrong) {
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  for (std::int32_t t = 0; t < steps; ++t) {
    const PlannedNode& node = plan.nodes[static_cast<std::size_t>(t)];
    if (node.window == StepRange{}) continue;
    const auto [begin, end] = node.window;
    const bool on_cpu = plan.machine.processor(node.processor).kind == ProcessorKind::cpu;
    if (on_cpu && begin >= 0 && end <= steps && node.window.contains(t)) continue;
    wrong.note([&, begin = begin, end = end] {
      return fmt::format("'{}', step {} on the {}, runs in the window [{}, {})",
                         plan.kernel(NodeId{t}).name, t, on_cpu ? "CPU" : "GPU", begin, end);
    });
  }
}

bool names_a_storage(const Plan& plan, StorageId storage) {
  return storage.valid() && storage.index() < plan.step.graph->storages.size();
}

void check_residences(const Plan& plan, const std::vector<Residence>& residences,
                      std::string_view memory, Violations& wrong) {
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  std::vector<std::int32_t> free_from(plan.step.graph->storages.size(), 0);
  for (std::size_t i = 0; i < residences.size(); ++i) {
    const Residence& residence = residences[i];
    const auto [begin, end] = residence.steps;
    const auto wording = [&, begin = begin, end = end](std::string_view what) {
      return fmt::format("{} residence {} (storage {}, [{}, {}), offset {}) {}", memory, i,
                         residence.storage.value, begin, end, residence.offset.count(), what);
    };
    if (!names_a_storage(plan, residence.storage)) {
      wrong.note([&] { return wording("names no storage"); });
      continue;
    }
    if (begin < 0 || begin >= end || end > steps) {
      wrong.note([&] { return wording("is no range of steps"); });
      continue;
    }
    if (!is_size(residence.offset)) wrong.note([&] { return wording("has no such offset"); });
    if (i > 0 && std::tuple(residences[i - 1].steps.begin, residences[i - 1].storage) >=
                     std::tuple(begin, residence.storage)) {
      wrong.note([&] { return wording("is out of order"); });
    }
    if (begin < free_from[residence.storage.index()]) {
      wrong.note([&] { return wording("begins while the storage has another one"); });
    }
    free_from[residence.storage.index()] = end;
  }
}

void check_transfers(const Plan& plan, Violations& wrong) {
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  std::int32_t last = 0;
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    const auto wording = [&](std::string_view what) {
      return fmt::format("transfer {} (storage {}, [{}, {}]) {}", i, transfer.storage.value,
                         transfer.begin, transfer.end, what);
    };
    if (!names_a_storage(plan, transfer.storage)) {
      wrong.note([&] { return wording("names no storage"); });
      continue;
    }
    if (!names_a_row(plan.machine.links, transfer.link.value)) {
      wrong.note([&] { return wording("takes no known link"); });
      continue;
    }
    if (transfer.begin < 0 || transfer.begin > transfer.end || transfer.end > steps) {
      wrong.note([&] { return wording("is no range of steps"); });
      continue;
    }
    if (transfer.begin < last) wrong.note([&] { return wording("is out of order"); });
    last = transfer.begin;
  }
}

}  // namespace

Check check_structure(const Plan& plan) {
  Violations wrong;
  if (plan.step.graph == nullptr) {
    wrong.note([] { return "the plan holds no step"; });
    return verdict("structure", wrong, "");
  }
  check_machine(plan.machine, wrong);
  check_settings(plan, wrong);
  check_granule(plan, wrong);
  check_times(plan.totals, wrong);
  check_tables(plan, wrong);
  check_pin_tables(plan, wrong);
  // Messages about sizes need tables of the right length.
  if (wrong.count == 0) check_sizes(plan, wrong);
  std::size_t residences = 0;
  if (wrong.count == 0) {
    for (std::size_t i = 0; i < plan.residences.size(); ++i) {
      const Memory& memory = plan.machine.memories[i];
      check_residences(plan, plan.residences[i], memory.name, wrong);
      residences += plan.residences[i].size();
    }
    check_transfers(plan, wrong);
    check_windows(plan, wrong);
  }
  return verdict(
      "structure", wrong,
      fmt::format("{} nodes, {} storages, {} residences, {} transfers", plan.nodes.size(),
                  plan.step.graph->storages.size(), residences, plan.transfers.size()));
}

}  // namespace stowage
