// The proof by execution: a plan's step run on a backend, against the same step with everything
// resident.
//
// Of one step, or of several one after the other, that train on from each other (executor.hpp).
//
// Three runs: at the plan's own offsets with copies as early as the plan's meaning allows, the same
// with copies as late as it allows, and, one step only, in padded places with canaries. A fourth,
// in which nothing runs but the step's own kernels and copies, is for the times. The reference has
// the same micro-batching and initial values and runs on the host kernels. On the host backend the
// two run the same kernels on the same numbers, and a host kernel's result does not depend on
// addresses: the results must be equal bit by bit (tolerance 0). A GPU's differ by rounding. Where
// they differ by more than the tolerance, the reference is run again with its kernels rounding
// another way (other_rounding.hpp), and what that moves it by is the measure.
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
  std::int64_t steps = 1;         ///< one after the other; at least 1
  double tolerance = 0;           ///< of relative differences (Difference::relative)
  bool stop_at_violation = true;  ///< false: let the numbers speak too
  /// The plan's seconds were measured on this machine with this backend: they are checked.
  bool check_times = false;
};

struct MeasuredDifference {
  ResultKind kind = ResultKind::loss;
  Difference difference;  ///< the worst of the runs
  double tolerance = 0;   ///< of Difference::relative
  /// What other rounding alone moves the reference by, where it had to be tried.
  std::optional<double> by_rounding = {};
};
/// A GPU's results may be so many times as far from the reference as other rounding moves it.
inline constexpr double rounding_margin = 4;

/// Measured in the run at the plan's own offsets with early copies; the times in the clean one.
struct MeasuredRun {
  Bytes gpu_peak;        ///< largest sum of what was resident, workspaces included
  Bytes gpu_high_water;  ///< how far into the arena anything was read or written
  Bytes host_high_water;
  CopyCount h2d, d2h;  ///< of all steps
  /// By step, the mean over micro-batches; empty: the step has no loss.
  std::vector<double> losses;
  /// Of the step that took the median of the time, without the first of several.
  LaneSeconds lanes;
  std::vector<StepTimes> times;           ///< of the clean run, by step
  std::optional<double> waits;            ///< CoreWaits::share of the clean run
  std::optional<DeviceMemoryUse> memory;  ///< of a device
  std::vector<MeasuredDifference> differences;
};

struct RunReport {
  std::string backend;  ///< "host", "cuda: NVIDIA H200"
  std::vector<Check> checks;
  std::vector<std::string> remarks;  ///< Backend::remarks
  MeasuredRun measured;
  [[nodiscard]] bool passed() const;  ///< there are checks, and all passed
};

/// Errors, which are not findings about the plan: a plan of kernels that Stowage does not run
/// (`--runtime pytorch`), kernels or data types without an implementation (missing_kernels.hpp),
/// and the backend's failures, no memory for the arenas among them.
[[nodiscard]] Result<RunReport> run_plan(const Plan& plan, Backend& backend,
                                         const RunOptions& options = {});

}  // namespace stowage
