#include "planner/assemble/copy_windows.hpp"

#include <algorithm>

#include "planner/assemble/idle_gaps.hpp"
#include "planner/problem/versions.hpp"

namespace stowage {
namespace {

class WindowMaker {
 public:
  WindowMaker(const ResidencyProblem& problem, GpuBudget budget, double scale)
      : problem_(problem),
        steps_(static_cast<std::int32_t>(problem.operations.size())),
        budget_(budget),
        scale_(scale),
        needed_(memory_floors(problem)) {
    start_.push_back(0);
    for (const Operation& operation : problem.operations) {
      start_.push_back(start_.back() + operation.engines.front().seconds);
    }
  }

  WindowedProblem run() && {
    WindowedProblem result{problem_, {}};
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      std::vector<Touch>& touches = result.problem.items[i].touches;
      // Items with pinned gaps leave little to choose and get no windows.
      if (problem_.items[i].gap_pins.empty()) touches = with_windows(problem_.items[i]);
      std::vector<std::int32_t> where;
      for (const Touch& touch : problem_.items[i].touches) {
        const auto found = std::ranges::lower_bound(touches, touch.step, {}, &Touch::step);
        where.push_back(static_cast<std::int32_t>(found - touches.begin()));
      }
      result.touch.push_back(std::move(where));
    }
    return result;
  }

 private:
  [[nodiscard]] double start(std::int32_t boundary) const {
    return start_[static_cast<std::size_t>(boundary)];
  }
  /// The step during which, or at whose end, the time `seconds` after the start is reached.
  [[nodiscard]] std::int32_t step_until(double seconds) const {
    const auto found = std::lower_bound(start_.begin(), start_.end(), seconds);
    return static_cast<std::int32_t>(found - start_.begin()) - 1;
  }
  /// The last step that begins at the time `seconds` or before it.
  [[nodiscard]] std::int32_t step_from(double seconds) const {
    const auto found = std::upper_bound(start_.begin(), start_.end(), seconds);
    return static_cast<std::int32_t>(found - start_.begin()) - 1;
  }

  std::vector<Touch> with_windows(const Item& item) {
    std::vector<std::int32_t> extra;
    const std::size_t count = item.touches.size();
    std::int32_t written = -1;  // the last step that wrote, so far
    for (std::size_t i = 0; i < count; ++i) {
      const Touch& touch = item.touches[i];
      if (touch.writes) written = touch.step;
      const bool last = i + 1 == count;
      if (last && !item.wraps) break;
      const Touch& next = item.touches[(i + 1) % count];
      if (!next.reads) continue;
      const std::int32_t end = last ? steps_ : next.step;
      // What was written before this step, or is never written, has no download to wait for.
      double leave = touch.step;
      if (written >= 0) {
        leave = std::max<double>(leave, step_until(start(written + 1) + scale_ * item.d2h_seconds));
      }
      double come = last ? steps_ : step_from(start(end) - scale_ * item.h2d_seconds);
      add_windows(item, touch.step, end, leave, come, extra);
      if (last) add_first_window(item, next.step, extra);
    }
    std::vector<Touch> touches = item.touches;
    for (const std::int32_t step : extra) touches.push_back({step, true, false});
    std::ranges::stable_sort(touches, {}, &Touch::step);
    return touches;
  }

  /// Adds both windows between the touches at `begin` and `end`. They shrink by the same ratio
  /// until at least one step lies between them.
  void add_windows(const Item& item, std::int32_t begin, std::int32_t end, double leave,
                   double come, std::vector<std::int32_t>& extra) {
    come = std::max<double>(come, begin);
    leave = std::min<double>(leave, end);
    while (come - leave < 2) {
      if (leave <= begin + 1 && come >= end - 1) return;
      leave = begin + (leave - begin) / 2;
      come = end - (end - come) / 2;
    }
    const auto first = static_cast<std::int32_t>(leave), second = static_cast<std::int32_t>(come);
    if (second - first < 2) return;
    if (first > begin) add(item, first, extra);
    if (second < end) add(item, second, extra);
  }

  /// Adds the window before the step's first touch of an item that wraps: that upload can hide only
  /// behind what the step itself does before it.
  void add_first_window(const Item& item, std::int32_t need, std::vector<std::int32_t>& extra) {
    const std::int32_t come =
        std::max(step_from(std::max(start(need) - scale_ * item.h2d_seconds, 0.0)), 0);
    if (come > 0 && come < need) add(item, come, extra);
  }

  void add(const Item& item, std::int32_t step, std::vector<std::int32_t>& extra) {
    const auto t = static_cast<std::size_t>(step);
    const Operation& at = problem_.operations[t];
    if (at.pin != Pin::gpu || !budget_.fits(needed_[t] + item.bytes)) return;
    if (!extra.empty() && extra.back() == step) return;
    needed_[t] += item.bytes;
    extra.push_back(step);
  }

  const ResidencyProblem& problem_;
  std::int32_t steps_;
  GpuBudget budget_;
  double scale_;
  std::vector<Bytes> needed_;  // by step: what must be there, windows so far with it
  std::vector<double> start_;  // by boundary, of compute alone
};

}  // namespace

WindowedProblem with_copy_windows(const ResidencyProblem& problem, GpuBudget budget, double scale) {
  return WindowMaker(problem, budget, scale).run();
}

Placement without_windows(const ResidencyProblem& problem, const WindowedProblem& windowed,
                          const Placement& placement) {
  Placement result{placement.device, placement.engine, {}, {}};
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    const std::vector<std::int32_t>& where = windowed.touch[i];
    const std::vector<bool>& stays = placement.resident[i];
    std::vector<bool> on_gpu, resident;
    for (const std::int32_t touch : where) {
      on_gpu.push_back(placement.on_gpu[i][static_cast<std::size_t>(touch)]);
    }
    for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
      const auto at = static_cast<std::size_t>(gap);
      auto part = static_cast<std::size_t>(where[at]);
      const auto end = static_cast<std::size_t>(where[(at + 1) % where.size()]);
      bool all = true;
      do {
        all = all && stays[part];
        part = (part + 1) % windowed.problem.items[i].touches.size();
      } while (part != end);
      resident.push_back(all);
    }
    resident = without_idle_gaps(item, placement.device, std::move(resident));
    // A copy beside a reader on the CPU without a resident gap on either side is of no use any
    // more.
    for (std::size_t touch = 0; touch < on_gpu.size(); ++touch) {
      const auto step = static_cast<std::size_t>(item.touches[touch].step);
      if (placement.device[step] == Device::gpu) continue;
      const std::int32_t before = gap_before(item, static_cast<std::int32_t>(touch));
      const bool used = (before >= 0 && resident[static_cast<std::size_t>(before)]) ||
                        (touch < resident.size() && resident[touch]);
      if (!used) on_gpu[touch] = false;
    }
    result.on_gpu.push_back(std::move(on_gpu));
    result.resident.push_back(std::move(resident));
  }
  return result;
}

}  // namespace stowage
