// Plans, run on the machine of this run.
#pragma once

#include <string>

#include "estimator/step/lowering_settings.hpp"
#include "gpu_probe/run/validate_run.hpp"

namespace stowage::test {

/// Of results of a whole step, whose tensors are of `type`, against the host's: rounding adds up
/// over the layers.
[[nodiscard]] double step_tolerance(DataType type);

/// Convolutions in float32 proper, so that they can be held against the host's.
[[nodiscard]] LoweringSettings without_tf32(LoweringSettings settings);

/// run_plan() on the machine: what failed, a line a check, or why it did not run; "": all passed.
[[nodiscard]] std::string failures_on_machine(const Plan& plan, const RunOptions& options);

}  // namespace stowage::test
