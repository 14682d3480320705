// Runs plans on the machine of this run.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/step/lowering_settings.hpp"
#include "gpu_probe/run/validate_run.hpp"

namespace stowage::test {

/// The settings with convolutions in float32 instead of TF32, so that they can be compared with the
/// host's.
[[nodiscard]] LoweringSettings without_tf32(LoweringSettings settings);

/// Runs the plan by run_plan() on the machine, with gpu_tolerance(). Returns the checks that
/// failed, one a line, or why it did not run; "": all checks passed.
[[nodiscard]] std::string failures_on_machine(const Plan& plan, std::int64_t steps = 1);

}  // namespace stowage::test
