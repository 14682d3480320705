// The plan's pins: which nodes and storages are where they have to be. What is pinned is what the
// plan lists by name; no pattern is looked at.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

struct Use {
  std::int32_t step = 0;
  bool reads = false;
};

// Nodes that read or write each storage, in order, one entry a node.
std::vector<std::vector<Use>> uses_of(const Plan& plan) {
  std::vector<std::vector<Use>> uses(plan.step.graph->storages.size());
  const auto use = [&](StorageId storage, std::int32_t step, bool reads) {
    std::vector<Use>& of = uses[storage.index()];
    if (of.empty() || of.back().step != step) of.push_back({step, false});
    of.back().reads = of.back().reads || reads;
  };
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const KernelNode& node = plan.step.graph->nodes[i];
    const auto step = static_cast<std::int32_t>(i);
    for (const TensorView& view : node.reads) use(view.storage, step, true);
    for (const TensorView& view : node.writes) use(view.storage, step, false);
  }
  return uses;
}

// Where on the GPU each storage lies, stretch by stretch.
class Stays {
 public:
  explicit Stays(const Plan& plan)
      : steps_(static_cast<std::int32_t>(plan.nodes.size())),
        ranges_(plan.step.graph->storages.size()),
        arrives_at_start_(plan.step.graph->storages.size(), false) {
    for (const Residence& residence : residences_on(plan, Device::gpu)) {
      ranges_[residence.storage.index()].push_back(residence.steps);
    }
    for (const Transfer& transfer : plan.transfers) {
      if (transfer.begin > 0 || direction_of(plan, transfer) != Direction::h2d) continue;
      arrives_at_start_[transfer.storage.index()] = true;
    }
  }

  /// One stretch from one node to a later one.
  [[nodiscard]] bool joins(StorageId storage, std::int32_t from, std::int32_t to) const {
    return any(storage,
               [&](StepRange range) { return range.contains(from) && range.contains(to); });
  }
  /// One stretch from a node over the step's end to a node of the next step.
  [[nodiscard]] bool joins_over_the_end(StorageId storage, std::int32_t from,
                                        std::int32_t to) const {
    return !arrives_at_start_[storage.index()] && any(storage, [&](StepRange range) {
      return range.contains(from) && range.end == steps_;
    }) && any(storage, [&](StepRange range) { return range.contains(to) && range.begin == 0; });
  }

 private:
  template <typename Condition>
  [[nodiscard]] bool any(StorageId storage, const Condition& condition) const {
    return std::ranges::any_of(ranges_[storage.index()], condition);
  }

  std::int32_t steps_;
  std::vector<std::vector<StepRange>> ranges_;  // by storage
  std::vector<bool> arrives_at_start_;
};

/// Whether what one step leaves in the storage is read by the next.
bool goes_round(const Storage& storage, const std::vector<Use>& uses) {
  return storage.persistence == Persistence::persistent &&
         (storage.carries_over || uses.front().reads);
}

/// From each of these uses to the next, round the step's end too where the value goes round.
template <typename Visit>
void visit_gaps(const Stays& stays, StorageId storage, const std::vector<Use>& uses, bool round,
                const Visit& visit) {
  for (std::size_t i = 1; i < uses.size(); ++i) {
    visit(uses[i - 1].step, uses[i].step, uses[i].reads,
          stays.joins(storage, uses[i - 1].step, uses[i].step));
  }
  if (!round || uses.empty()) return;
  const std::int32_t last = uses.back().step, first = uses.front().step;
  visit(last, first, true, stays.joins_over_the_end(storage, last, first));
}

void check_storage(const Plan& plan, const Stays& stays, StorageId storage, Pin pin,
                   const std::vector<Use>& uses, Violations& wrong) {
  if (uses.empty()) return;
  const bool round = goes_round(plan.storage(storage), uses);
  const auto violation = [&](std::string_view what, std::int32_t from, std::int32_t to) {
    wrong.note([&] {
      return fmt::format("{} is pinned to the {} from {} to {}", storage_label(plan, storage), what,
                         step_label(plan, from), step_label(plan, to));
    });
  };
  if (pin == Pin::gpu) {
    visit_gaps(stays, storage, uses, round,
               [&](std::int32_t from, std::int32_t to, bool reads, bool joined) {
                 if (reads && !joined) violation("GPU, but is not kept there", from, to);
               });
    return;
  }
  // A copy for a node on the GPU may come early, while the CPU reads the other one.
  std::vector<Use> on_gpu;
  for (const Use& use : uses) {
    const PlannedNode& node = plan.nodes[static_cast<std::size_t>(use.step)];
    if (device_of(plan, node) == Device::gpu) on_gpu.push_back(use);
  }
  visit_gaps(stays, storage, on_gpu, round,
             [&](std::int32_t from, std::int32_t to, bool, bool joined) {
               if (joined) violation("CPU, but stays on the GPU", from, to);
             });
}

}  // namespace

Check check_pins(const Plan& plan) {
  Violations wrong;
  const StepPins& pins = plan.pins;
  std::int64_t nodes = 0, storages = 0;
  for (std::size_t i = 0; i < pins.nodes.size(); ++i) {
    const Pin pin = pins.nodes[i].pin;
    if (pin == Pin::free) continue;
    ++nodes;
    const bool on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    if (on_gpu == (pin == Pin::gpu)) continue;
    wrong.note([&] {
      return fmt::format("'{}' is on the {}, but is pinned to the {}",
                         plan.step.graph->nodes[i].name, on_gpu ? "GPU" : "CPU",
                         on_gpu ? "CPU" : "GPU");
    });
  }
  if (std::any_of(pins.storages.begin(), pins.storages.end(),
                  [](const AppliedPin& applied) { return applied.pin != Pin::free; })) {
    const auto uses = uses_of(plan);
    const Stays stays(plan);
    for (std::size_t i = 0; i < pins.storages.size(); ++i) {
      if (pins.storages[i].pin == Pin::free) continue;
      ++storages;
      check_storage(plan, stays, StorageId::of(i), pins.storages[i].pin, uses[i], wrong);
    }
  }
  return verdict("pins", wrong, fmt::format("{} nodes and {} storages pinned", nodes, storages));
}

}  // namespace stowage
