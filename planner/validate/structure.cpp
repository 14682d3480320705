// The plan as a table: are its enumerators, ids, ranges, orders and sizes such that the other
// checks may index and add without looking again?
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

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

void check_settings(const Plan& plan, Violations& wrong) {
  const LoweringSettings& lowering = plan.inputs.lowering;
  if (!is_enumerator(lowering.kernels, KernelSet::stowage)) {
    wrong.note([] { return "the kernel set is none of the known ones"; });
  }
  if (!is_enumerator(lowering.mode, Mode::inference)) {
    wrong.note([] { return "the mode is neither train nor inference"; });
  }
  if (!is_enumerator(plan.pinned, Pinned::all_nodes)) {
    wrong.note([] { return "it is not known which nodes are pinned to the GPU"; });
  }
  if (plan.nodes.empty()) wrong.note([] { return "there are no nodes"; });
  const std::pair<const char*, Bytes> sizes[] = {
      {"available", plan.inputs.available},
      {"budget", plan.inputs.budget},
      {"gpu_peak", plan.totals.gpu_peak},
      {"arena", plan.totals.arena},
      {"host_peak", plan.totals.host_peak},
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

void check_times(const PlanTotals& totals, Violations& wrong) {
  const std::pair<const char*, double> times[] = {
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

void check_tables(const Plan& plan, Violations& wrong) {
  if (plan.nodes.size() > most_entries || plan.storages.size() > most_entries) {
    wrong.note([] { return "there are more nodes or storages than ids"; });
  }
  std::int64_t left = most_bytes;  // so that no sum of sizes can leave 64 bits
  for (const PlannedStorage& storage : plan.storages) {
    if (!is_enumerator(storage.storage_class, StorageClass::temporary)) {
      wrong.note([&] { return fmt::format("'{}' has no known class", storage.name); });
    }
    if (!is_size(storage.bytes) || storage.bytes.count() > left) {
      wrong.note([&] {
        return fmt::format("'{}' has {} bytes, with which the sum leaves 61 bits", storage.name,
                           storage.bytes.count());
      });
      continue;
    }
    left -= storage.bytes.count();
  }
  for (const PlannedNode& node : plan.nodes) {
    if (!is_enumerator(node.device, Device::gpu)) {
      wrong.note([&] { return fmt::format("'{}' is on no known device", node.name); });
    }
    if (!is_size(node.workspace) || !is_size(node.workspace_offset) ||
        node.workspace.count() > left) {
      wrong.note([&] {
        return fmt::format("'{}' has a workspace of {} bytes at {}", node.name,
                           node.workspace.count(), node.workspace_offset.count());
      });
    }
  }
}

bool names_a_storage(const Plan& plan, StorageId storage) {
  return storage.valid() && storage.index() < plan.storages.size();
}

void check_residences(const Plan& plan, const std::vector<Residence>& residences,
                      std::string_view side, Violations& wrong) {
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  std::vector<std::int32_t> free_from(plan.storages.size(), 0);
  for (std::size_t i = 0; i < residences.size(); ++i) {
    const Residence& residence = residences[i];
    const auto [begin, end] = residence.steps;
    const auto wording = [&, begin = begin, end = end](std::string_view what) {
      return fmt::format("{} residence {} (storage {}, [{}, {}), offset {}) {}", side, i,
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
    if (!is_enumerator(transfer.direction, Direction::d2h)) {
      wrong.note([&] { return wording("has no known direction"); });
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
  check_settings(plan, wrong);
  check_times(plan.totals, wrong);
  check_tables(plan, wrong);
  // Without tables of a sane size nothing else can be put into words.
  if (wrong.count == 0) {
    check_residences(plan, plan.gpu, "GPU", wrong);
    check_residences(plan, plan.host, "host", wrong);
    check_transfers(plan, wrong);
  }
  return verdict("structure", wrong,
                 fmt::format("{} nodes, {} storages, {} GPU residences, {} host residences, {} "
                             "transfers",
                             plan.nodes.size(), plan.storages.size(), plan.gpu.size(),
                             plan.host.size(), plan.transfers.size()));
}

}  // namespace stowage
