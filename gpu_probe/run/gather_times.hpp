// From a run's times to those that other plans are made with (planner/problem/measured_times.hpp).
#pragma once

#include <span>
#include <vector>

#include "gpu_probe/run/step_times.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/measured_times.hpp"

namespace stowage {

/// Of a node the median over the warm steps, of a call the mean over its nodes, so that what the
/// step's kernels took is what they are planned with. `emulated`: both processors are the host, and
/// kernels that ran beside another count only where none of that call ran alone. `by_step`: of the
/// clean run, at least one. The backend, the card and the host are the caller's to name.
[[nodiscard]] MeasuredTimes gather_times(const Plan& plan, const std::vector<StepTimes>& by_step,
                                         bool emulated);

/// One copy, or several of its size.
struct TimedCopy {
  double bytes = 0, seconds = 0;
};
/// Least squares, with neither part below 0; nullopt: there are no copies.
[[nodiscard]] std::optional<MeasuredLink> fitted_link(std::span<const TimedCopy> copies);

}  // namespace stowage
