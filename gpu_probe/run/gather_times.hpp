// Makes the times that other plans are made with (planner/problem/measured_times.hpp) from the
// times of a run.
#pragma once

#include <span>
#include <vector>

#include "gpu_probe/run/step_times.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/measured_times.hpp"

namespace stowage {

/// A node's time is its median over the warm steps. A call's time is the mean over its nodes, so
/// that the sum over the step stays what it was. `emulated`: both processors are the host; kernels
/// that ran beside another count only for a call of which no kernel ran alone. `by_step`: of the
/// clean run, at least one step. The caller sets the names of the backend, the card and the host.
[[nodiscard]] MeasuredTimes gather_times(const Plan& plan, const std::vector<StepTimes>& by_step,
                                         bool emulated);

/// One copy, or several copies of one size.
struct TimedCopy {
  double bytes = 0, seconds = 0;
};
/// Fits latency and bandwidth by least squares, neither below 0. Nullopt: there are no copies.
[[nodiscard]] std::optional<MeasuredLink> fitted_link(std::span<const TimedCopy> copies);

}  // namespace stowage
