#include "planner/problem/residency_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "estimator/base/live_sum.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {

namespace {

bool is_written(const Item& item) {
  return std::any_of(item.touches.begin(), item.touches.end(),
                     [](const Touch& touch) { return touch.writes; });
}

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

std::string ill_formed(const Operation& operation) {
  if (operation.engines.empty()) return fmt::format("'{}' has no engine", operation.name);
  const bool timed = std::all_of(operation.engines.begin(), operation.engines.end(),
                                 [](const EngineCost& e) { return is_time(e.seconds); });
  if (!timed || !is_time(operation.cpu_seconds)) {
    return fmt::format("'{}' has a time that is negative or not finite", operation.name);
  }
  return {};
}

std::string ill_formed(const Item& item, std::int32_t steps) {
  if (item.touches.empty()) return fmt::format("nothing touches '{}'", item.name);
  if (!item.gap_pins.empty() && std::ssize(item.gap_pins) != gap_count(item)) {
    return fmt::format("'{}' has pins for {} of its {} gaps", item.name, item.gap_pins.size(),
                       gap_count(item));
  }
  std::int32_t last = -1;
  for (const Touch& touch : item.touches) {
    if (touch.step <= last || touch.step >= steps || !(touch.reads || touch.writes)) {
      return fmt::format("'{}' has touches out of order", item.name);
    }
    last = touch.step;
  }
  if (!is_time(item.h2d_seconds) || !is_time(item.d2h_seconds)) {
    return fmt::format("'{}' has a time that is negative or not finite", item.name);
  }
  const bool written = is_written(item);
  if (item.wraps && item.host_at_start == written) {
    return fmt::format("'{}' wraps and is {}written, so host_at_start must be {}", item.name,
                       written ? "" : "never ", !written);
  }
  if (!item.wraps && !item.host_at_start && item.touches.front().reads) {
    return fmt::format("'{}' is read at step {} before anything has written it", item.name,
                       item.touches.front().step);
  }
  return {};
}

// Counts one item's transfers by a walk over its touches with the state of its current version.
struct ItemWalk {
  const ResidencyProblem& problem;
  const Placement& placement;
  std::size_t index;
  const Item& item;
  bool host_valid = false;
  int fetches = 0;
  int downloads = 0;

  bool on_cpu(std::size_t touch) const {
    return placement.device[static_cast<std::size_t>(item.touches[touch].step)] == Device::cpu;
  }
  bool resident_before(std::size_t touch) const {
    const std::size_t count = item.touches.size();
    if (touch == 0) return item.wraps && placement.resident[index][count - 1];
    return placement.resident[index][touch - 1];
  }
  void need_host_copy() {
    if (!host_valid) ++downloads;
    host_valid = true;
  }
  void read(std::size_t touch) {
    if (on_cpu(touch)) need_host_copy();
    if (placement.on_gpu[index][touch] && !resident_before(touch)) {
      need_host_copy();
      ++fetches;
    }
  }
  void write(std::size_t touch) { host_valid = on_cpu(touch); }

  // A wrapping item that is written is walked from its last write round to the same write: every
  // version's transfers of one step are then met once, and the state at the start is known.
  void walk() {
    const std::size_t count = item.touches.size();
    std::size_t first = 0;
    if (item.wraps && !item.host_at_start) {
      first = count - 1;
      while (!item.touches[first].writes) --first;
      write(first);
      ++first;
    } else {
      host_valid = item.host_at_start;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t touch = (first + i) % count;
      if (item.touches[touch].reads) read(touch);
      if (item.touches[touch].writes) write(touch);
    }
  }
};

std::string inconsistency_of(const ResidencyProblem& problem, const Placement& placement,
                             std::size_t index) {
  const Item& item = problem.items[index];
  const std::vector<bool>& on_gpu = placement.on_gpu[index];
  const std::vector<bool>& resident = placement.resident[index];
  const std::size_t count = item.touches.size();
  if (on_gpu.size() != count || std::ssize(resident) != gap_count(item)) {
    return fmt::format("the placement of '{}' has the wrong size", item.name);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Touch& touch = item.touches[i];
    const Operation& operation = problem.operations[static_cast<std::size_t>(touch.step)];
    const bool gpu = placement.device[static_cast<std::size_t>(touch.step)] == Device::gpu;
    if (gpu && !on_gpu[i]) {
      return fmt::format("'{}' runs on the GPU without '{}'", operation.name, item.name);
    }
    if (!gpu && touch.writes && on_gpu[i]) {
      return fmt::format("'{}' writes '{}' on the CPU and it is said to be on the GPU",
                         operation.name, item.name);
    }
  }
  for (std::size_t gap = 0; gap < resident.size(); ++gap) {
    if (resident[gap] && !(on_gpu[gap] && on_gpu[(gap + 1) % count])) {
      return fmt::format("'{}' is resident after step {} but not at both ends of the gap",
                         item.name, item.touches[gap].step);
    }
    const GapPin pin = gap_pin(item, static_cast<std::int32_t>(gap));
    if (pin == (resident[gap] ? GapPin::dropped : GapPin::resident)) {
      return fmt::format("'{}' is pinned to be {} after step {}", item.name,
                         resident[gap] ? "dropped" : "resident", item.touches[gap].step);
    }
  }
  return {};
}

/// Whether a pinned residency keeps a copy at this touch, wherever its operation runs.
bool is_kept_at(const Item& item, std::int32_t touch) {
  const std::int32_t before = gap_before(item, touch);
  return (before >= 0 && gap_pin(item, before) == GapPin::resident) ||
         (touch < gap_count(item) && gap_pin(item, touch) == GapPin::resident);
}

/// Adds the memory of gaps that are pinned resident, strictly inside them.
void add_kept_gaps(const Item& item, LiveSum& sum, std::int32_t steps) {
  for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
    if (gap_pin(item, gap) != GapPin::resident) continue;
    const GapSteps inside = steps_inside(item, gap, steps);
    sum.add(inside.within, item.bytes);
    sum.add(inside.wrapped, item.bytes);
  }
}

std::string inconsistency_of(const ResidencyProblem& problem, const Placement& placement) {
  const std::size_t operations = problem.operations.size();
  if (placement.device.size() != operations || placement.engine.size() != operations ||
      placement.on_gpu.size() != problem.items.size() ||
      placement.resident.size() != problem.items.size()) {
    return "the placement is of another problem";
  }
  for (std::size_t i = 0; i < operations; ++i) {
    const Operation& operation = problem.operations[i];
    const bool gpu = placement.device[i] == Device::gpu;
    const std::int32_t engine = placement.engine[i];
    if (engine < 0 || engine >= (gpu ? std::ssize(operation.engines) : 1)) {
      return fmt::format("'{}' has no engine {}", operation.name, engine);
    }
    if (operation.pin == (gpu ? Pin::cpu : Pin::gpu)) {
      return fmt::format("'{}' is pinned to the {}", operation.name, gpu ? "CPU" : "GPU");
    }
  }
  for (std::size_t index = 0; index < problem.items.size(); ++index) {
    std::string found = inconsistency_of(problem, placement, index);
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<Bytes> memory_of(const ResidencyProblem& problem, const Placement& placement) {
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  LiveSum sum(steps);
  for (std::size_t index = 0; index < problem.items.size(); ++index) {
    const Item& item = problem.items[index];
    for (std::size_t i = 0; i < item.touches.size(); ++i) {
      if (placement.on_gpu[index][i]) sum.add(StepRange::single(item.touches[i].step), item.bytes);
    }
    for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
      if (!placement.resident[index][static_cast<std::size_t>(gap)]) continue;
      const GapSteps inside = steps_inside(item, gap, steps);
      sum.add(inside.within, item.bytes);
      sum.add(inside.wrapped, item.bytes);
    }
  }
  std::vector<Bytes> memory = std::move(sum).by_step();
  for (std::size_t t = 0; t < memory.size(); ++t) {
    if (placement.device[t] == Device::cpu) continue;
    const Operation& operation = problem.operations[t];
    const auto engine = static_cast<std::size_t>(placement.engine[t]);
    memory[t] += operation.temporaries + operation.engines[engine].workspace;
  }
  return memory;
}

}  // namespace

GapPin gap_pin(const Item& item, std::int32_t gap) {
  return item.gap_pins.empty() ? GapPin::free : item.gap_pins[static_cast<std::size_t>(gap)];
}

std::string ill_formed(const ResidencyProblem& problem) {
  for (const Operation& operation : problem.operations) {
    std::string found = ill_formed(operation);
    if (!found.empty()) return found;
  }
  for (const Item& item : problem.items) {
    std::string found = ill_formed(item, static_cast<std::int32_t>(problem.operations.size()));
    if (!found.empty()) return found;
  }
  return {};
}

Evaluation evaluate(const ResidencyProblem& problem, const Placement& placement) {
  Evaluation result;
  result.inconsistency = inconsistency_of(problem, placement);
  result.consistent = result.inconsistency.empty();
  if (!result.consistent) return result;
  for (std::size_t t = 0; t < problem.operations.size(); ++t) {
    const Operation& operation = problem.operations[t];
    const auto engine = static_cast<std::size_t>(placement.engine[t]);
    const bool on_gpu = placement.device[t] == Device::gpu;
    result.compute_seconds += on_gpu ? operation.engines[engine].seconds : operation.cpu_seconds;
    if (!on_gpu) result.cpu_seconds += operation.cpu_seconds;
  }
  for (std::size_t index = 0; index < problem.items.size(); ++index) {
    const Item& item = problem.items[index];
    ItemWalk walk{problem, placement, index, item};
    walk.walk();
    result.upload_seconds += walk.fetches * item.h2d_seconds;
    result.download_seconds += walk.downloads * item.d2h_seconds;
    result.h2d_bytes += (item.bytes - item.padding) * walk.fetches;
    result.d2h_bytes += (item.bytes - item.padding) * walk.downloads;
  }
  result.cost_seconds = result.compute_seconds + (result.upload_seconds + result.download_seconds);
  result.memory = memory_of(problem, placement);
  const Peak top = peak(result.memory);
  result.peak = top.bytes;
  result.peak_step = top.step;
  return result;
}

ResidencyProblem weighted(ResidencyProblem problem, const LaneWeights& weights) {
  for (Operation& operation : problem.operations) {
    operation.cpu_seconds *= weights.cpu;
    for (EngineCost& engine : operation.engines) engine.seconds *= weights.gpu;
  }
  for (Item& item : problem.items) {
    item.h2d_seconds *= weights.upload;
    item.d2h_seconds *= weights.download;
  }
  return problem;
}

std::vector<Bytes> memory_floors(const ResidencyProblem& problem) {
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  LiveSum kept(steps);
  for (const Item& item : problem.items) add_kept_gaps(item, kept, steps);
  std::vector<Bytes> needed = std::move(kept).by_step();
  const auto pinned = [&](std::size_t t) { return problem.operations[t].pin == Pin::gpu; };
  for (std::size_t t = 0; t < needed.size(); ++t) {
    const Operation& operation = problem.operations[t];
    if (!pinned(t)) continue;
    const auto least = std::min_element(
        operation.engines.begin(), operation.engines.end(),
        [](const EngineCost& a, const EngineCost& b) { return a.workspace < b.workspace; });
    needed[t] += operation.temporaries + least->workspace;
  }
  for (const Item& item : problem.items) {
    for (std::int32_t i = 0; i < std::ssize(item.touches); ++i) {
      const auto t = static_cast<std::size_t>(item.touches[static_cast<std::size_t>(i)].step);
      if (pinned(t) || is_kept_at(item, i)) needed[t] += item.bytes;
    }
  }
  return needed;
}

Floor memory_floor(const ResidencyProblem& problem) {
  const Peak top = peak(memory_floors(problem));
  return {top.bytes, top.step};
}

}  // namespace stowage
