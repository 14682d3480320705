#include "planner/assemble/all_gpu_placement.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/assemble/idle_gaps.hpp"

namespace stowage {
namespace {

/// Keeps the item in every gap that its own pins and its operations' pins allow, except a copy that
/// no operation on the GPU will read.
void place_with_room(const Item& item, Placement& placement) {
  const std::size_t touches = item.touches.size();
  const std::size_t gaps = touches - (item.wraps ? 0 : 1);
  const auto on_cpu = [&](std::size_t touch) {
    return placement.device[static_cast<std::size_t>(item.touches[touch].step)] == Device::cpu;
  };
  std::vector<bool> on_gpu(touches), resident(gaps);
  for (std::size_t i = 0; i < touches; ++i) on_gpu[i] = !on_cpu(i);
  for (std::size_t gap = 0; gap < gaps; ++gap) {
    const std::size_t next = (gap + 1) % touches;
    const bool holds =
        !(on_cpu(gap) && item.touches[gap].writes) && !(on_cpu(next) && item.touches[next].writes);
    resident[gap] = holds && gap_pin(item, static_cast<std::int32_t>(gap)) != GapPin::dropped;
  }
  resident = without_idle_gaps(item, placement.device, std::move(resident));
  for (std::size_t gap = 0; gap < gaps; ++gap) {
    if (resident[gap]) on_gpu[gap] = on_gpu[(gap + 1) % touches] = true;
  }
  placement.on_gpu.push_back(std::move(on_gpu));
  placement.resident.push_back(std::move(resident));
}

}  // namespace

Placement all_gpu_placement(const ResidencyProblem& problem, GpuBudget budget) {
  Placement placement;
  for (const Operation& operation : problem.operations) {
    placement.device.push_back(operation.pin == Pin::cpu ? Device::cpu : Device::gpu);
  }
  placement.engine.assign(problem.operations.size(), 0);
  for (const Item& item : problem.items) place_with_room(item, placement);
  const std::vector<Bytes> memory = evaluate(problem, placement).memory;
  for (std::size_t i = 0; i < problem.operations.size(); ++i) {
    const std::vector<EngineCost>& engines = problem.operations[i].engines;
    if (budget.fits(memory[i]) || placement.device[i] == Device::cpu) continue;
    const Bytes others = memory[i] - engines.front().workspace;
    auto taken = std::find_if(engines.begin(), engines.end(), [&](const EngineCost& engine) {
      return budget.fits(others + engine.workspace);
    });
    if (taken == engines.end()) {
      taken = std::min_element(
          engines.begin(), engines.end(),
          [](const EngineCost& a, const EngineCost& b) { return a.workspace < b.workspace; });
    }
    placement.engine[i] = static_cast<std::int32_t>(taken - engines.begin());
  }
  return placement;
}

}  // namespace stowage
