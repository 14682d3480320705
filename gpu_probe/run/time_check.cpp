#include "gpu_probe/run/time_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stowage {

Check check_times(const Plan& plan, const std::vector<StepTimes>& by_step, bool emulated) {
  const LaneSeconds lanes = planned_lane_seconds(plan);
  const double planned = emulated ? lanes.kernels() : lanes.step;
  const double tolerance = emulated ? emulated_tolerance : device_tolerance;
  std::vector<double> seconds;
  for (const StepTimes& step : warm_steps(by_step)) {
    seconds.push_back(emulated ? kernel_seconds(step) : step_seconds(step));
  }
  const double measured = median(seconds);
  const double off = planned > 0 ? measured / planned - 1 : 0;
  Check check{emulated ? "kernel seconds" : "step seconds", std::abs(off) <= tolerance,
              fmt::format("{:.4g} s measured, {:.4g} s planned ({:+.1f} percent, {:.0f} are "
                          "allowed)",
                          measured, planned, 100 * off, 100 * tolerance)};
  const auto [least, most] = std::ranges::minmax(seconds);
  if (!check.passed && most - least > tolerance * measured) {
    check.passed = true;
    check.detail += fmt::format(
        "; not compared: the machine is not idle, its steps took {:.4g} to {:.4g} s", least, most);
  }
  return check;
}

}  // namespace stowage
