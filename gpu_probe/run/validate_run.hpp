// Validates a plan by execution: its step runs on a backend, and its results are compared with
// those of the same step with everything resident.
//
// It runs one step, or several that train on from each other (executor.hpp).
//
// There are three runs: at the plan's own offsets with copies as early as the plan allows; the same
// with copies as late as it allows; and, for one step only, in padded places with canaries. A
// fourth run, for the times, runs nothing but the step's own kernels and copies. The reference has
// the same micro-batches and initial values and runs on the host kernels.
//
// The host backend runs the same kernels on the same numbers as the reference, and a host kernel's
// result does not depend on addresses: the results must be equal bit by bit (tolerance 0). A GPU's
// results differ by rounding. Where they differ by more than the tolerance, the reference runs
// again with its rounding perturbed (perturbed_rounding.hpp), and the tolerance becomes a multiple
// of what that changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "gpu_probe/run/memory_check.hpp"
#include "gpu_probe/run/step_results.hpp"
#include "gpu_probe/run/step_times.hpp"
#include "planner/plan/plan.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

struct RunOptions {
  std::int64_t steps = 1;         ///< that run one after the other; at least 1
  double tolerance = 0;           ///< the largest Difference::relative that passes
  bool stop_at_violation = true;  ///< false: go on, and compare the results as well
  /// Whether the plan's times were measured on this machine with this backend, and are checked.
  bool check_times = false;
};

struct MeasuredDifference {
  ResultKind kind = ResultKind::loss;
  Difference difference;  ///< the worst of the runs
  double tolerance = 0;   ///< the largest Difference::relative that passes
  /// How far perturbed rounding moves the reference's results; none: it was not needed.
  std::optional<double> rounding_effect = {};
};
/// A GPU's results may differ from the reference by this many times the effect of perturbed
/// rounding.
inline constexpr double rounding_margin = 4;

/// Measured in the run at the plan's own offsets with early copies; the times in the clean run.
struct MeasuredRun {
  Bytes gpu_peak;        ///< largest sum of residences and workspaces
  Bytes gpu_high_water;  ///< how far into the arena anything was read or written
  Bytes host_high_water;
  CopyCount h2d, d2h;  ///< of all steps
  /// By step, the mean over micro-batches; empty: the step has no loss.
  std::vector<double> losses;
  /// Of the warm step with the median time.
  LaneSeconds lanes;
  std::vector<StepTimes> times;           ///< of the clean run, by step
  std::optional<double> waits;            ///< CoreWaits::share of the clean run
  std::optional<DeviceMemoryUse> memory;  ///< none: the backend has no device
  std::vector<MeasuredDifference> differences;
};

struct RunReport {
  std::string backend;  ///< "host", "cuda: NVIDIA H200"
  std::vector<Check> checks;
  std::vector<std::string> remarks;  ///< Backend::remarks
  MeasuredRun measured;
  [[nodiscard]] bool passed() const;  ///< whether there are checks, and all passed
};

/// Errors say nothing about the plan: its kernels are not ours (`--runtime pytorch`), a kernel or a
/// data type has no implementation (missing_kernels.hpp), or the backend fails, for example for
/// lack of memory for the arenas.
[[nodiscard]] Result<RunReport> run_plan(const Plan& plan, Backend& backend,
                                         const RunOptions& options = {});

}  // namespace stowage
