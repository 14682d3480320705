#include "planner/recompute/pinned_lives.hpp"

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

bool is_on_cpu(const ResidencyProblem& problem, const Touch& touch) {
  return problem.operations[static_cast<std::size_t>(touch.step)].pin == Pin::cpu;
}

/// Adds the range from the first operation on the GPU to the last, for touches between two writes
/// on the CPU.
void add_live_range(const ResidencyProblem& problem, const std::vector<Touch>& touches,
                    std::vector<StepRange>& live_ranges) {
  const auto on_gpu = [&](const Touch& touch) { return !is_on_cpu(problem, touch); };
  const auto first = std::find_if(touches.begin(), touches.end(), on_gpu);
  if (first == touches.end()) return;
  const auto last = std::find_if(touches.rbegin(), touches.rend(), on_gpu);
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  if (first->step <= last->step) {
    live_ranges.push_back({first->step, last->step + 1});
  } else {  // they go round the step's end
    live_ranges.push_back({0, last->step + 1});
    live_ranges.push_back({first->step, steps});
  }
}

bool is_read_in_backward(const StepGraph& step, StorageId id) {
  return std::ranges::any_of(step.nodes, [&](const KernelNode& node) {
    return node.phase == Phase::backward &&
           std::ranges::any_of(node.reads,
                               [&](const TensorView& view) { return view.storage == id; });
  });
}

bool is_useful(const RerunGroup& group, const StepGraph& step, const StepPins& pins) {
  for (const NodeId node : group.nodes) {
    if (pins.of(node) == Pin::cpu) return false;
  }
  bool any_free = false;
  for (const StorageId made : group.makes) {
    if (pins.of(made) == Pin::gpu) return false;
    any_free = any_free || pins.of(made) == Pin::free;
  }
  if (!any_free) return false;
  const bool any_pinned =
      std::ranges::any_of(group.makes, [&](StorageId made) { return pins.of(made) == Pin::cpu; });
  return !any_pinned || std::ranges::any_of(group.makes, [&](StorageId made) {
    return pins.of(made) == Pin::free && is_read_in_backward(step, made);
  });
}

}  // namespace

std::vector<StepRange> live_ranges_on_gpu(const ResidencyProblem& problem, const Item& item) {
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  const auto written_on_cpu = [&](const Touch& touch) {
    return touch.writes && is_on_cpu(problem, touch);
  };
  std::vector<Touch> touches = item.touches;
  const auto first_write = std::ranges::find_if(touches, written_on_cpu);
  if (item.wraps && first_write == touches.end()) {
    const bool any_on_gpu = std::ranges::any_of(
        touches, [&](const Touch& touch) { return !is_on_cpu(problem, touch); });
    return any_on_gpu ? std::vector<StepRange>{{0, steps}} : std::vector<StepRange>{};
  }
  // The touches of an item that wraps start at its first write on the CPU.
  if (item.wraps) std::rotate(touches.begin(), first_write, touches.end());
  std::vector<StepRange> live_ranges;
  std::vector<Touch> between;
  for (const Touch& touch : touches) {
    if (written_on_cpu(touch)) {
      add_live_range(problem, between, live_ranges);
      between.clear();
    } else {
      between.push_back(touch);
    }
  }
  add_live_range(problem, between, live_ranges);
  std::sort(live_ranges.begin(), live_ranges.end());
  return live_ranges;
}

RerunGroups useful_rerun_groups(RerunGroups groups, const StepGraph& step, const StepPins& pins) {
  if (pins.empty()) return groups;
  RerunGroups kept;
  std::vector<std::int32_t> number(groups.groups.size(), -1);
  for (std::size_t g = 0; g < groups.groups.size(); ++g) {
    if (!is_useful(groups.groups[g], step, pins)) continue;
    number[g] = static_cast<std::int32_t>(kept.groups.size());
    kept.groups.push_back(std::move(groups.groups[g]));
  }
  kept.group_of = std::move(groups.group_of);
  for (std::int32_t& group : kept.group_of) {
    if (group >= 0) group = number[static_cast<std::size_t>(group)];
  }
  return kept;
}

}  // namespace stowage
