// Compares a run's times with those of a plan whose times were measured on the same machine.
//
// A time depends on the machine as much as on the plan. If it is off and the run had to wait for a
// core, or the run's own steps are further apart than the check allows, then something else is
// running, and the check says nothing about the plan.
#pragma once

#include <optional>
#include <vector>

#include "gpu_probe/run/step_times.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

/// How far the measured seconds may be from the planned ones, as a share of these.
inline constexpr double emulated_tolerance = 0.25;  ///< the sum of kernels, on the host
inline constexpr double device_tolerance = 0.10;    ///< the step, on a device
/// The share of a run's time that it waits for cores on an idle machine, at most (core_waits.hpp).
inline constexpr double idle_waits = 0.10;

struct ComparedSeconds {
  double measured = 0, planned = 0;
  [[nodiscard]] double ratio() const { return planned > 0 ? measured / planned : 1; }
};
/// What check_times compares, for each warm step; sorted by ratio, ascending.
[[nodiscard]] std::vector<ComparedSeconds> compared_seconds(const Plan& plan,
                                                            const std::vector<StepTimes>& by_step,
                                                            bool emulated);

/// Checks the step with the median ratio. `emulated`: the host is the "GPU" too, so copies run
/// beside nothing and the kernels of both sides share one processor; then the sum of the kernels
/// that ran alone is compared. `waits`: CoreWaits::share of the run; none: unknown. Precondition:
/// there is a step, and check_structure(plan) passed.
[[nodiscard]] Check check_times(const Plan& plan, const std::vector<StepTimes>& by_step,
                                bool emulated, std::optional<double> waits = {});

}  // namespace stowage
