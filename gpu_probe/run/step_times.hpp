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

/// From the first beginning to the last end; 0 where nothing ran.
[[nodiscard]] double step_seconds(const StepTimes& times);
/// The sum over all kernels, whichever processor ran them.
[[nodiscard]] double kernel_seconds(const StepTimes& times);
/// The sum over the copies of a lane.
[[nodiscard]] double copy_seconds(const StepTimes& times, const Plan& plan, Direction lane);

/// How long each lane was busy, and the step from its beginning to its end.
struct LaneSeconds {
  double gpu = 0, cpu = 0, h2d = 0, d2h = 0;
  double step = 0;
  [[nodiscard]] double kernels() const { return gpu + cpu; }
};
[[nodiscard]] LaneSeconds lane_seconds(const StepTimes& times, const Plan& plan);
/// As the plan has it: by its machine's figures, its step simulated. Precondition: check_structure.
[[nodiscard]] LaneSeconds planned_lane_seconds(const Plan& plan);

/// By NodeId: whether no kernel of the other processor ran beside it. Where both processors are the
/// host, those that did took each other's time.
[[nodiscard]] std::vector<bool> ran_alone(const StepTimes& times, const Plan& plan);

/// Those that count: without the first of several, which finds nothing warm.
[[nodiscard]] std::span<const StepTimes> warm_steps(const std::vector<StepTimes>& by_step);
/// The lower one of an even number. Precondition: there is a value.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace stowage
