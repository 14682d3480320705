// StepTimes: when each kernel and each copy of an execution ran, by the backend's own events.
#pragma once

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

}  // namespace stowage
