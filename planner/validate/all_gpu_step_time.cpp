#include "planner/validate/all_gpu_step_time.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planner/validate/node_seconds.hpp"

namespace stowage {

std::optional<double> all_gpu_step_time(const Plan& plan) {
  const auto is_on_cpu = [](const AppliedPin& applied) { return applied.pin == Pin::cpu; };
  if (std::ranges::any_of(plan.pins.nodes, is_on_cpu) ||
      std::ranges::any_of(plan.pins.storages, is_on_cpu)) {
    return std::nullopt;
  }
  const StepGraph& step = *plan.step.graph;
  const Processor& gpu =
      *std::ranges::find(plan.machine.processors, ProcessorKind::gpu, &Processor::kind);
  const Link& link = *std::ranges::find_if(plan.machine.links, [&](const Link& each) {
    return plan.machine.memory(each.to).kind == MemoryKind::device;
  });
  std::vector<bool> is_uploaded(step.storages.size(), false);
  double uploaded = 0, reached = 0;
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    for (const TensorView& view : step.nodes[i].reads) {
      const std::size_t storage = view.storage.index();
      if (step.storages[storage].persistence != Persistence::from_host || is_uploaded[storage]) {
        continue;
      }
      is_uploaded[storage] = true;
      uploaded += copy_seconds(plan, view.storage, link);
      reached = std::max(reached, uploaded);
    }
    reached += node_seconds(plan, i, gpu);
  }
  return reached;
}

}  // namespace stowage
