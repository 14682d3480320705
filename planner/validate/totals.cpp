// The plan's figures, counted and simulated again from the definitions in plan.hpp and
// docs/plan-file.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/plan/two_sides.hpp"
#include "planner/validate/all_gpu_cost.hpp"
#include "planner/validate/all_gpu_step_time.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/node_seconds.hpp"

namespace stowage {

namespace {

constexpr double tolerance = 1e-6;     // relative, of seconds
constexpr double cut_rounding = 1e-5;  // relative: the planner's cuts are rounded down by node

double transfer_seconds(const Plan& plan, const Transfer& transfer) {
  return copy_seconds(plan, transfer.storage, plan.machine.link(transfer.link));
}

double additive_cost(const Plan& plan) {
  double seconds = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    seconds += node_seconds(plan, i);
  }
  for (const Transfer& transfer : plan.transfers) seconds += transfer_seconds(plan, transfer);
  return seconds;
}

// The CPU's nodes in the order in which they are issued.
std::vector<std::size_t> issue_order(const Plan& plan) {
  std::vector<std::pair<std::int32_t, std::size_t>> issued;  // boundary, node
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (device_of(plan, plan.nodes[i]) == Device::gpu) continue;
    issued.emplace_back(window_of(plan, NodeId::of(i)).begin, i);
  }
  std::sort(issued.begin(), issued.end());
  std::vector<std::size_t> order;
  order.reserve(issued.size());
  for (const auto& [boundary, node] : issued) order.push_back(node);
  return order;
}

// Simulates the step on four lanes, boundary by boundary:
// 1. Boundary t is reached when the GPU's nodes before it and the CPU's nodes until it are done.
// 2. The downloads of t start when their lane is free; so do the uploads of t, which also wait for
// every download until t.
// 3. Node t and the CPU's nodes of t wait for every copy until t.
double simulated_step(const Plan& plan) {
  const std::size_t steps = plan.nodes.size();
  std::vector<std::vector<const Transfer*>> beginning(steps + 1);
  for (const Transfer& transfer : plan.transfers) {
    beginning[static_cast<std::size_t>(transfer.begin)].push_back(&transfer);
  }
  const std::vector<std::size_t> queue = issue_order(plan);
  auto next = queue.begin();
  std::vector<double> copied(steps + 1, 0);      // when every copy until t is done
  std::vector<double> downloaded(steps + 1, 0);  // when every download until t is done
  std::vector<double> cpu_done(steps + 1, 0);    // when every node of the CPU until t is done
  double reached = 0, uploading = 0, downloading = 0, on_cpu = 0;  // when each lane is free
  for (std::size_t t = 0; t <= steps; ++t) {
    if (t > 0) {
      copied[t] = std::max(copied[t], copied[t - 1]);
      downloaded[t] = std::max(downloaded[t], downloaded[t - 1]);
      cpu_done[t] = std::max(cpu_done[t], cpu_done[t - 1]);
    }
    reached = std::max(reached, cpu_done[t]);
    for (const Transfer* download : beginning[t]) {
      if (direction_of(plan, *download) != Direction::d2h) continue;
      downloading = std::max(downloading, reached) + transfer_seconds(plan, *download);
      const auto end = static_cast<std::size_t>(download->end);
      downloaded[end] = std::max(downloaded[end], downloading);
      copied[end] = std::max(copied[end], downloading);
    }
    for (const Transfer* upload : beginning[t]) {
      if (direction_of(plan, *upload) != Direction::h2d) continue;
      uploading = std::max({uploading, reached, downloaded[t]}) + transfer_seconds(plan, *upload);
      const auto end = static_cast<std::size_t>(upload->end);
      copied[end] = std::max(copied[end], uploading);
    }
    reached = std::max(reached, copied[t]);
    if (t == steps) break;
    for (; next != queue.end(); ++next) {
      const StepRange window = window_of(plan, NodeId::of(*next));
      if (static_cast<std::size_t>(window.begin) != t) break;
      on_cpu = std::max(on_cpu, reached) + node_seconds(plan, *next);
      double& done = cpu_done[static_cast<std::size_t>(window.end)];
      done = std::max(done, on_cpu);
    }
    if (device_of(plan, plan.nodes[t]) == Device::gpu) reached += node_seconds(plan, t);
  }
  return reached;
}

std::int64_t bytes_moved(const Plan& plan, Direction direction) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::int64_t sum = 0;
  for (const Transfer& transfer : plan.transfers) {
    if (direction_of(plan, transfer) != direction) continue;
    const std::int64_t bytes = plan.bytes(transfer.storage).count();
    sum = bytes > most - sum ? most : sum + bytes;
  }
  return sum;
}

Check check_bytes(const Plan& plan) {
  Violations wrong;
  const std::int64_t uploaded = bytes_moved(plan, Direction::h2d);
  const std::int64_t downloaded = bytes_moved(plan, Direction::d2h);
  const auto compare = [&](std::string_view name, std::int64_t counted, Bytes claimed) {
    if (counted == claimed.count()) return;
    wrong.note([&] {
      return fmt::format("{} is {}, but the copies carry {} bytes", name, claimed.count(), counted);
    });
  };
  compare("h2d", uploaded, plan.totals.h2d);
  compare("d2h", downloaded, plan.totals.d2h);
  return verdict("transferred bytes", wrong,
                 fmt::format("{} up and {} down in {} copies", format_bytes(Bytes(uploaded)),
                             format_bytes(Bytes(downloaded)), plan.transfers.size()));
}

// The bound is of plans that compute on the GPU, except nodes that are pinned to the CPU; updates
// may run on either side.
Check check_transfer_bound(const Plan& plan) {
  const Bytes bound = plan.totals.pcie_lower_bound;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (device_of(plan, plan.nodes[i]) == Device::cpu &&
        plan.step.graph->nodes[i].phase != Phase::update &&
        plan.pins.of(NodeId::of(i)) != Pin::cpu) {
      return {"transfer bound", true,
              fmt::format("not compared: the bound is for computing on the GPU, and {} is on the "
                          "CPU",
                          step_label(plan, static_cast<std::int32_t>(i)))};
    }
  }
  Violations wrong;
  const Bytes moved = plan.totals.h2d + plan.totals.d2h;
  if (bound > moved) {
    wrong.note([&] {
      return fmt::format("pcie_lower_bound is {}, but the plan moves {} bytes", bound.count(),
                         moved.count());
    });
  }
  return verdict(
      "transfer bound", wrong,
      fmt::format("{} moved, no plan less than {}", format_bytes(moved), format_bytes(bound)));
}

bool equal(double a, double b) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

Check check_seconds(std::string name, std::string_view field, double claimed, double counted) {
  Violations wrong;
  // Written so that a NaN is wrong too.
  if (!equal(claimed, counted)) {
    wrong.note([&] { return fmt::format("{} is {}, counted again {}", field, claimed, counted); });
  }
  return verdict(std::move(name), wrong, fmt::format("{} s", counted));
}

// The costs of a step with unlimited memory. At best each node is on its cheaper side. At worst
// every node that is not pinned to the CPU is on the GPU, each input is uploaded once, and pins
// cause copies.
struct UnlimitedCosts {
  double least_nodes = 0;
  double gpu_nodes = 0;  ///< pinned ones where they are pinned to
  double cpu_nodes = 0;  ///< of these, the ones on the CPU
  double inputs = 0;     ///< uploads of inputs, and what pins copy
};

/// By storage: whether pins make it cross the link: it lives on the CPU, or a node there touches
/// it.
std::vector<bool> crossing(const Plan& plan) {
  std::vector<bool> crosses(plan.step.graph->storages.size());
  for (std::size_t i = 0; i < crosses.size(); ++i) {
    crosses[i] = plan.pins.of(StorageId::of(i)) == Pin::cpu;
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.pins.of(NodeId::of(i)) != Pin::cpu) continue;
    const KernelNode& kernel = plan.step.graph->nodes[i];
    for (const TensorView& view : kernel.reads) crosses[view.storage.index()] = true;
    for (const TensorView& view : kernel.writes) crosses[view.storage.index()] = true;
  }
  return crosses;
}

// The worst case: each read on the GPU of such a storage is an upload, and each write there a
// download.
double copies_of_pins(const Plan& plan) {
  double seconds = 0;
  if (plan.pins.empty()) return seconds;
  const std::vector<bool> crosses = crossing(plan);
  const auto add = [&](const std::vector<TensorView>& views, bool up) {
    for (const TensorView& view : views) {
      for (const Link& link : plan.machine.links) {
        const bool leads_up = plan.machine.memory(link.to).kind == MemoryKind::device;
        if (crosses[view.storage.index()] && leads_up == up) {
          seconds += copy_seconds(plan, view.storage, link);
        }
      }
    }
  };
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.pins.of(NodeId::of(i)) == Pin::cpu) continue;
    add(plan.step.graph->nodes[i].reads, true);
    add(plan.step.graph->nodes[i].writes, false);
  }
  return seconds;
}

UnlimitedCosts unlimited_costs(const Plan& plan) {
  UnlimitedCosts seconds;
  seconds.inputs = copies_of_pins(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const Pin pin = plan.pins.of(NodeId::of(i));
    double least = std::numeric_limits<double>::infinity();
    for (const Processor& processor : plan.machine.processors) {
      const double on_it = node_seconds(plan, i, processor);
      const bool is_gpu = processor.kind == ProcessorKind::gpu;
      if (pin == (is_gpu ? Pin::cpu : Pin::gpu)) continue;
      least = std::min(least, on_it);
      if (is_gpu || pin == Pin::cpu) seconds.gpu_nodes += on_it;
      if (!is_gpu && pin == Pin::cpu) seconds.cpu_nodes += on_it;
    }
    seconds.least_nodes += least;
  }
  const auto& storages = plan.step.graph->storages;
  for (std::size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].persistence != Persistence::from_host) continue;
    for (const Link& link : plan.machine.links) {
      if (plan.machine.memory(link.to).kind != MemoryKind::device) continue;
      seconds.inputs += copy_seconds(plan, StorageId::of(i), link);
    }
  }
  return seconds;
}

bool within(double value, double least, double most) {
  return value >= least * (1 - tolerance) && value <= most * (1 + tolerance);
}

// A plan is optimal in what it minimised. Its bound on bytes is of plans that compute on the GPU,
// so that it proves a plan optimal only among these.
void check_optimality(const Plan& plan, Violations& wrong) {
  const PlanTotals& totals = plan.totals;
  if (!totals.proved_optimal) return;
  const Bytes moved = totals.h2d + totals.d2h;
  if (plan.minimised == Minimised::bytes) {
    if (plan.pinned != Pinned::all_nodes) {
      wrong.note([] { return "it is called optimal in bytes, but may run nodes on the CPU"; });
    }
    if (totals.pcie_lower_bound == moved) return;
    wrong.note([&] {
      return fmt::format("it is called optimal, but moves {} bytes beside a bound of {}",
                         moved.count(), totals.pcie_lower_bound.count());
    });
  } else if (!totals.cost_is_least()) {
    wrong.note([&] {
      return fmt::format("it is called optimal, but costs {} s beside a bound of {} s",
                         totals.cost_seconds, totals.cost_lower_bound_seconds);
    });
  }
}

void check_all_gpu_cost(const Plan& plan, Violations& wrong) {
  const double claimed = plan.totals.all_gpu_cost_seconds;
  const std::optional<std::vector<double>> counted = all_gpu_costs(plan);
  if (counted) {
    const auto is_claimed = [&](double cost) {
      return claimed >= cost * (1 - cut_rounding) && claimed <= cost * (1 + tolerance);
    };
    if (std::ranges::any_of(*counted, is_claimed)) return;
    wrong.note([&] {
      return fmt::format("all_gpu_cost_seconds is {}, counted again {}", claimed,
                         fmt::join(*counted, " or "));
    });
    return;
  }
  const UnlimitedCosts free = unlimited_costs(plan);
  if (within(claimed, free.least_nodes, free.gpu_nodes + free.inputs)) return;
  wrong.note([&] {
    return fmt::format("all_gpu_cost_seconds {} is not between {} and {}", claimed,
                       free.least_nodes, free.gpu_nodes + free.inputs);
  });
}

// Checks the figures that gap() and overhead_gap() use: both must be shares.
Check check_cost_bound(const Plan& plan) {
  Violations wrong;
  const PlanTotals& totals = plan.totals;
  const double cost = totals.cost_seconds;
  const double bound = totals.cost_lower_bound_seconds;
  const double all_gpu = totals.all_gpu_cost_seconds;
  const double slack = tolerance * cost;
  if (bound > cost + slack) {
    wrong.note([&] {
      return fmt::format("cost_lower_bound_seconds {} is above the cost {}", bound, cost);
    });
  }
  check_optimality(plan, wrong);
  if (all_gpu > cost + slack) {
    wrong.note(
        [&] { return fmt::format("all_gpu_cost_seconds {} is above the cost {}", all_gpu, cost); });
  } else if (bound < all_gpu - slack) {
    wrong.note([&] {
      return fmt::format("the bound {} is below the all-GPU cost {}, which is a bound too", bound,
                         all_gpu);
    });
  }
  check_all_gpu_cost(plan, wrong);
  return verdict("cost bound", wrong, fmt::format("{} s, no plan under {} s", cost, bound));
}

// Of a step with nodes or storages that are pinned to the CPU only the limits are known here: these
// nodes may run beside the rest.
std::string wrong_all_gpu_step(const Plan& plan) {
  const double claimed = plan.totals.all_gpu_step_seconds;
  if (const std::optional<double> counted = all_gpu_step_time(plan)) {
    if (equal(claimed, *counted)) return {};
    return fmt::format("all_gpu_step_seconds is {}, counted again {}", claimed, *counted);
  }
  const UnlimitedCosts free = unlimited_costs(plan);
  const double least = std::max(free.gpu_nodes - free.cpu_nodes, free.cpu_nodes);
  if (within(claimed, least, free.gpu_nodes + free.inputs)) return {};
  return fmt::format("all_gpu_step_seconds {} is not between {} and {}", claimed, least,
                     free.gpu_nodes + free.inputs);
}

// Simulates the plan's own step, and the step without a limit on memory.
Check check_step_time(const Plan& plan) {
  Check check =
      check_seconds("step time", "step_seconds", plan.totals.step_seconds, simulated_step(plan));
  if (const std::string wrong = wrong_all_gpu_step(plan); !wrong.empty()) {
    check.detail = check.passed ? wrong : check.detail + "; " + wrong;
    check.passed = false;
  }
  return check;
}

// Compares the bound with the step as simulated here.
Check check_step_bound(const Plan& plan) {
  const std::optional<double>& bound = plan.totals.step_lower_bound_seconds;
  if (!bound) return {"step bound", true, "none is claimed"};
  const double step = simulated_step(plan);
  Violations wrong;
  if (!(*bound <= step * (1 + tolerance))) {
    wrong.note([&] {
      return fmt::format("step_lower_bound_seconds {} is above the simulated step {}", *bound,
                         step);
    });
  }
  return verdict("step bound", wrong, fmt::format("{} s, no plan under {} s", step, *bound));
}

}  // namespace

std::vector<Check> check_totals(const Plan& plan) {
  return {check_bytes(plan),
          check_transfer_bound(plan),
          check_seconds("cost", "cost_seconds", plan.totals.cost_seconds, additive_cost(plan)),
          check_cost_bound(plan),
          check_step_time(plan),
          check_step_bound(plan)};
}

}  // namespace stowage
