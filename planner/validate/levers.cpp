// Checks that everything that the plan's means of placement do not move stays on the GPU from one
// node there to the next.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/step/saved_storages.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate/stays.hpp"

namespace stowage {

namespace {

bool may_move(StorageClass storage_class, const Levers& levers) {
  switch (storage_class) {
    case StorageClass::parameter:
    case StorageClass::parameter_copy:
    case StorageClass::buffer:
      return levers.weights;
    case StorageClass::optimizer_state:
    case StorageClass::gradient:
      return levers.optimizer;
    case StorageClass::temporary:
    case StorageClass::workspace:
      return true;
    default:
      return levers.activations;
  }
}

}  // namespace

Check check_levers(const Plan& plan) {
  Violations wrong;
  std::int64_t kept = 0;
  const auto on_gpu = [&](std::int32_t step) {
    return device_of(plan, plan.nodes[static_cast<std::size_t>(step)]) == Device::gpu;
  };
  if (!(plan.levers == Levers{})) {
    const auto uses = uses_of(plan);
    const Stays stays(plan);
    const std::vector<bool> saved =
        plan.levers.saved ? kept_by_autograd(*plan.step.graph) : std::vector<bool>(uses.size());
    const auto phase = [&](std::int32_t step) {
      return plan.step.graph->nodes[static_cast<std::size_t>(step)].phase;
    };
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const StorageId id = StorageId::of(i);
      const bool pinned = !plan.pins.storages.empty() && plan.pins.storages[i].pin != Pin::free;
      if (uses[i].empty() || pinned || may_move(plan.storage(id).storage_class, plan.levers)) {
        continue;
      }
      ++kept;
      visit_gaps(stays, id, uses[i], goes_round(plan.storage(id), uses[i]),
                 [&](std::int32_t from, std::int32_t to, bool reads, bool joined) {
                   if (!reads || joined || !on_gpu(from) || !on_gpu(to)) return;
                   if (saved[i] && spans_to_backward(phase(from), phase(to))) return;
                   wrong.note([&] {
                     return fmt::format("{} is not kept on the GPU from {} to {}",
                                        storage_label(plan, id), step_label(plan, from),
                                        step_label(plan, to));
                   });
                 });
    }
  }
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool updates = plan.step.graph->nodes[i].phase == Phase::update;
    const bool pinned = !plan.pins.nodes.empty() && plan.pins.nodes[i].pin == Pin::cpu;
    if (on_gpu(static_cast<std::int32_t>(i)) || pinned) continue;
    if (updates ? plan.levers.optimizer : plan.levers.operators) continue;
    wrong.note([&] {
      return fmt::format("{} is on the CPU", step_label(plan, static_cast<std::int32_t>(i)));
    });
  }
  return verdict("placement", wrong,
                 fmt::format("{} may move; {} storages stay", to_string(plan.levers), kept));
}

}  // namespace stowage
