// A run's times held against a plan's that were measured on the same machine.
//
// A time is the machine's as much as the plan's. Where it is off, and the run had to wait for a
// core, or its own steps are further apart than the check allows, something else is running, and
// nothing is said of the plan.
#pragma once

#include <optional>
#include <vector>

#include "gpu_probe/run/step_times.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

/// Of what is planned, either way.
inline constexpr double emulated_tolerance = 0.25;  ///< the sum of kernels, on the host
inline constexpr double device_tolerance = 0.10;    ///< the step, on a device
/// Share of the run's time that an idle machine lets it wait (core_waits.hpp).
inline constexpr double idle_waits = 0.10;

struct ComparedSeconds {
  double measured = 0, planned = 0;
  [[nodiscard]] double ratio() const { return planned > 0 ? measured / planned : 1; }
};
/// What check_times compares, of each warm step; by their ratio, ascending.
[[nodiscard]] std::vector<ComparedSeconds> compared_seconds(const Plan& plan,
                                                            const std::vector<StepTimes>& by_step,
                                                            bool emulated);

/// Of the step with the median ratio. `emulated`: the "GPU" is the host, whose copies run beside
/// nothing, and whose kernels on both sides share one processor; what is compared is the sum of the
/// kernels that ran alone then. `waits`: the run's; none: not known. Precondition: there is a step,
/// and the plan passes check_structure.
[[nodiscard]] Check check_times(const Plan& plan, const std::vector<StepTimes>& by_step,
                                bool emulated, std::optional<double> waits = {});

}  // namespace stowage
