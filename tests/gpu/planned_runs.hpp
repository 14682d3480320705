// Plans, run on the machine of this run.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/step/lowering_settings.hpp"
#include "gpu_probe/run/validate_run.hpp"

namespace stowage::test {

/// Convolutions in float32 proper, so that they can be held against the host's.
[[nodiscard]] LoweringSettings without_tf32(LoweringSettings settings);

/// run_plan() on the machine, held against the host within gpu_tolerance(): what failed, a line a
/// check, or why it did not run; "": all passed.
[[nodiscard]] std::string failures_on_machine(const Plan& plan, std::int64_t steps = 1);

}  // namespace stowage::test
