#include "planner/explain/planned_problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/arena/arena.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {

namespace {

Rates rates_of(const Machine& machine) {
  Rates rates;
  for (const Processor& processor : machine.processors) {
    const bool gpu = processor.kind == ProcessorKind::gpu;
    (gpu ? rates.gpu_flops : rates.cpu_flops) = processor.flops;
    (gpu ? rates.gpu_bandwidth : rates.cpu_bandwidth) = processor.bandwidth;
    (gpu ? rates.gpu_launch : rates.cpu_launch) = processor.launch;
    if (gpu) rates.gpu_kernels = processor.kernels;
  }
  for (const Link& link : machine.links) {
    const bool up = machine.memory(link.to).kind == MemoryKind::device;
    (up ? rates.h2d_bandwidth : rates.d2h_bandwidth) = link.bandwidth;
    (up ? rates.h2d_latency : rates.d2h_latency) = link.latency;
  }
  return rates;
}

// Measured seconds of the plan's nodes replace the rates.
void set_measured_seconds(const Machine& machine, ResidencyProblem& problem) {
  for (const Processor& processor : machine.processors) {
    for (std::size_t i = 0; i < processor.node_seconds.size(); ++i) {
      Operation& operation = problem.operations[i];
      if (processor.kind == ProcessorKind::gpu) {
        for (EngineCost& engine : operation.engines) engine.seconds = processor.node_seconds[i];
      } else {
        operation.cpu_seconds = processor.node_seconds[i];
      }
    }
  }
}

// The links of a plan's file may have latencies of their own.
void set_copy_seconds(const Plan& plan, Item& item) {
  for (const Link& link : plan.machine.links) {
    Rates rates;
    rates.h2d_latency = link.latency;
    rates.h2d_bandwidth = link.bandwidth;
    const bool up = plan.machine.memory(link.to).kind == MemoryKind::device;
    (up ? item.h2d_seconds : item.d2h_seconds) = h2d_seconds(rates, item.bytes - item.padding);
  }
}

/// Whether the sums of all sizes stay within 64 bits; a file may claim any sizes.
bool can_be_counted(const ResidencyProblem& problem) {
  double bytes = 0;
  for (const Item& item : problem.items) {
    const auto touches = static_cast<double>(item.touches.size());
    bytes += 4 * touches * static_cast<double>(item.bytes.count());
  }
  return bytes < 4e18;
}

class Reader {
 public:
  Reader(const Plan& plan, PlannedProblem& result)
      : plan_(plan), result_(result), stays_(plan.step.graph->storages.size()) {
    arrives_at_start_.resize(stays_.size(), false);
    for (const Residence& residence : residences_on(plan, Device::gpu)) {
      stays_[residence.storage.index()].push_back(residence.steps);
    }
    for (const Transfer& transfer : plan.transfers) {
      if (transfer.begin > 0 || direction_of(plan, transfer) != Direction::h2d) continue;
      arrives_at_start_[transfer.storage.index()] = true;
    }
  }

  void read() {
    Placement& placement = result_.placement;
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      placement.device.push_back(device_of(plan_, plan_.nodes[i]));
      placement.engine.push_back(0);
      Operation& operation = result_.problem.operations[i];
      operation.engines.resize(1);
      operation.engines.front().workspace = round_up(plan_.nodes[i].workspace, arena_alignment);
    }
    for (std::size_t index = 0; index < result_.problem.items.size(); ++index) read_item(index);
  }

 private:
  [[nodiscard]] bool on_cpu(const Touch& touch) const {
    return result_.placement.device[static_cast<std::size_t>(touch.step)] == Device::cpu;
  }

  [[nodiscard]] bool stays_through(const Item& item, StorageId storage, std::size_t gap) const {
    const Touch& from = item.touches[gap];
    const Touch& to = item.touches[(gap + 1) % item.touches.size()];
    if ((from.writes && on_cpu(from)) || (to.writes && on_cpu(to))) return false;
    const auto& stays = stays_[storage.index()];
    const auto steps = static_cast<std::int32_t>(plan_.nodes.size());
    if (gap + 1 < item.touches.size()) {
      return std::ranges::any_of(stays, [&](const StepRange& stay) {
        return stay.contains(from.step) && stay.contains(to.step);
      });
    }
    return !arrives_at_start_[storage.index()] &&
           std::ranges::any_of(stays,
                               [&](const StepRange& stay) {
                                 return stay.contains(from.step) && stay.end == steps;
                               }) &&
           std::ranges::any_of(stays, [&](const StepRange& stay) {
             return stay.begin == 0 && stay.contains(to.step);
           });
  }

  void read_item(std::size_t index) {
    Item& item = result_.problem.items[index];
    set_copy_seconds(plan_, item);
    const StorageId storage = result_.problem.storage_of[index];
    std::vector<bool> on_gpu, resident;
    for (const Touch& touch : item.touches) on_gpu.push_back(!on_cpu(touch));
    for (std::size_t gap = 0; gap < static_cast<std::size_t>(gap_count(item)); ++gap) {
      resident.push_back(stays_through(item, storage, gap));
      if (resident.back()) on_gpu[gap] = on_gpu[(gap + 1) % on_gpu.size()] = true;
    }
    result_.placement.on_gpu.push_back(std::move(on_gpu));
    result_.placement.resident.push_back(std::move(resident));
  }

  const Plan& plan_;
  PlannedProblem& result_;
  std::vector<std::vector<StepRange>> stays_;  // by storage
  std::vector<bool> arrives_at_start_;
};

}  // namespace

Result<PlannedProblem> planned_problem(const Plan& plan) {
  PlannedProblem result;
  SizedStep step = plan.step;
  step.engines.assign(plan.nodes.size(), {});
  result.problem = make_problem(step, rates_of(plan.machine), {.compute_on_gpu = false});
  set_measured_seconds(plan.machine, result.problem);
  const auto refuse = [](const std::string& why) {
    return failure("the plan is not valid: " + why, "its validation says all that is wrong");
  };
  if (std::string wrong = ill_formed(result.problem); !wrong.empty()) return refuse(wrong);
  if (!can_be_counted(result.problem))
    return refuse("its copies could carry more than 62 bits say");
  Reader(plan, result).read();
  result.evaluation = evaluate(result.problem, result.placement);
  if (!result.evaluation.consistent) return refuse(result.evaluation.inconsistency);
  if (result.evaluation.h2d_bytes != plan.totals.h2d ||
      result.evaluation.d2h_bytes != plan.totals.d2h) {
    return refuse(fmt::format("its copies carry {} up and {} down, its totals say {} and {}",
                              format_bytes(result.evaluation.h2d_bytes),
                              format_bytes(result.evaluation.d2h_bytes),
                              format_bytes(plan.totals.h2d), format_bytes(plan.totals.d2h)));
  }
  result.item_of.assign(plan.step.graph->storages.size(), -1);
  result.items_at.resize(plan.nodes.size());
  for (std::size_t index = 0; index < result.problem.items.size(); ++index) {
    const auto item = static_cast<std::int32_t>(index);
    result.item_of[result.problem.storage_of[index].index()] = item;
    for (const Touch& touch : result.problem.items[index].touches) {
      result.items_at[static_cast<std::size_t>(touch.step)].push_back(item);
    }
  }
  return result;
}

std::string_view to_string(StorageState state) {
  switch (state) {
    case StorageState::unused:
      return "unused";
    case StorageState::on_cpu:
      return "cpu";
    case StorageState::on_gpu:
      return "gpu";
    case StorageState::swapped:
      return "swapped";
  }
  return "unused";
}

StorageState state_of(const PlannedProblem& planned, StorageId storage) {
  const std::int32_t index = planned.item_of[storage.index()];
  if (index < 0) return StorageState::unused;
  const Item& item = planned.problem.items[static_cast<std::size_t>(index)];
  const auto on_gpu = [&](std::size_t touch) {
    return planned.placement.device[static_cast<std::size_t>(item.touches[touch].step)] ==
           Device::gpu;
  };
  const std::vector<bool>& resident = planned.placement.resident[static_cast<std::size_t>(index)];
  // Swapped if the GPU fetches a value that it has had before: since the CPU last wrote it, in this
  // step or, if the value goes round the step's end, in the one before.
  bool used = false, had = false, returns = false;
  for (int round = item.wraps ? 0 : 1; round < 2; ++round) {
    for (std::size_t i = 0; i < item.touches.size(); ++i) {
      if (!on_gpu(i)) {
        had = had && !item.touches[i].writes;
        continue;
      }
      const std::int32_t before = gap_before(item, static_cast<std::int32_t>(i));
      const bool kept = before >= 0 && resident[static_cast<std::size_t>(before)];
      returns = returns || (round == 1 && item.touches[i].reads && !kept && had);
      used = had = true;
    }
  }
  if (!used) return StorageState::on_cpu;
  return returns ? StorageState::swapped : StorageState::on_gpu;
}

}  // namespace stowage
