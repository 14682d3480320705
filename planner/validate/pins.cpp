// Checks that pinned nodes and storages are where the plan's pins put them. The plan lists pinned
// nodes and storages by name; patterns are not read.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/stays.hpp"

namespace stowage {

namespace {

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
