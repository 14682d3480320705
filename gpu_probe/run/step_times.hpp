// StepTimes: when each kernel and each copy of an execution ran, by the backend's own events.
#pragma once

#include <span>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

struct StepTimes {
  std::vector<TimeSpan> nodes;   ///< by NodeId
  std::vector<TimeSpan> copies;  ///< by index into Plan::transfers
};

/// Seconds from the first begin to the last end; 0 where nothing ran.
[[nodiscard]] double step_seconds(const StepTimes& times);
/// The sum over all kernels, on both processors.
[[nodiscard]] double kernel_seconds(const StepTimes& times);
/// The sum over all copies of a lane.
[[nodiscard]] double copy_seconds(const StepTimes& times, const Plan& plan, Direction lane);

/// How long each lane was busy, and how long the step took.
struct LaneSeconds {
  double gpu = 0, cpu = 0, h2d = 0, d2h = 0;
  double step = 0;
  [[nodiscard]] double kernels() const { return gpu + cpu; }
};
[[nodiscard]] LaneSeconds lane_seconds(const StepTimes& times, const Plan& plan);
/// As planned: the step is simulated with the figures of the plan's machine. Precondition:
/// check_structure(plan) passed.
[[nodiscard]] LaneSeconds planned_lane_seconds(const Plan& plan);

/// By NodeId: whether no kernel of the other processor ran at the same time. Where the host is both
/// processors, kernels that run at the same time slow each other down.
[[nodiscard]] std::vector<bool> ran_alone(const StepTimes& times, const Plan& plan);

/// The steps whose times count: all but the first, which finds nothing warm; a single step counts.
[[nodiscard]] std::span<const StepTimes> warm_steps(const std::vector<StepTimes>& by_step);

}  // namespace stowage
