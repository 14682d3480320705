// A run's times held against a plan's that were measured on the same machine.
//
// A time is the machine's as much as the plan's: where it is off, and the run's own steps are
// further apart than the check allows, something else is running, and nothing is said of the plan.
#pragma once

#include <vector>

#include "gpu_probe/run/step_times.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

/// Of what is planned, either way.
inline constexpr double emulated_tolerance = 0.25;  ///< the sum of all kernels, on the host
inline constexpr double device_tolerance = 0.10;    ///< the step, on a device

/// `emulated`: the "GPU" is the host, whose copies run beside nothing; what is compared is the sum
/// of the kernels then. Precondition: there is a step, and the plan passes check_structure.
[[nodiscard]] Check check_times(const Plan& plan, const std::vector<StepTimes>& by_step,
                                bool emulated);

}  // namespace stowage
