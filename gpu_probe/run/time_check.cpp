#include "gpu_probe/run/time_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "planner/validate/node_seconds.hpp"

namespace stowage {
namespace {

ComparedSeconds kernels_alone(const Plan& plan, const StepTimes& step) {
  const std::vector<bool> alone = ran_alone(step, plan);
  ComparedSeconds sum;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!alone[i]) continue;
    sum.measured += step.nodes[i].seconds();
    sum.planned += node_seconds(plan, i);
  }
  return sum;
}

}  // namespace

std::vector<ComparedSeconds> compared_seconds(const Plan& plan,
                                              const std::vector<StepTimes>& by_step,
                                              bool emulated) {
  std::vector<ComparedSeconds> pairs;
  for (const StepTimes& step : warm_steps(by_step)) {
    pairs.push_back(emulated ? kernels_alone(plan, step)
                             : ComparedSeconds{step_seconds(step), plan.totals.step_seconds});
  }
  std::ranges::sort(pairs, {}, &ComparedSeconds::ratio);
  return pairs;
}

Check check_times(const Plan& plan, const std::vector<StepTimes>& by_step, bool emulated,
                  std::optional<double> waits) {
  const double tolerance = emulated ? emulated_tolerance : device_tolerance;
  const std::vector<ComparedSeconds> pairs = compared_seconds(plan, by_step, emulated);
  assert(!pairs.empty());
  const ComparedSeconds& middle = pairs[(pairs.size() - 1) / 2];
  const double off = middle.ratio() - 1;
  Check check{emulated ? "kernel seconds" : "step seconds", std::abs(off) <= tolerance,
              fmt::format("{:.4g} s measured, {:.4g} s planned ({:+.1f} percent, {:.0f} are "
                          "allowed)",
                          middle.measured, middle.planned, 100 * off, 100 * tolerance)};
  const double least = pairs.front().ratio(), most = pairs.back().ratio();
  if (check.passed) return check;
  if (waits && *waits > idle_waits) {
    check.passed = true;
    check.detail += fmt::format(
        "; not compared: the machine is not idle, it waited {:.0f} percent of the time for a "
        "core",
        100 * *waits);
  } else if (most - least > tolerance * middle.ratio()) {
    check.passed = true;
    check.detail += fmt::format(
        "; not compared: the machine is not idle, its steps took {:.2f} to {:.2f} of what is "
        "planned",
        least, most);
  }
  return check;
}

}  // namespace stowage
