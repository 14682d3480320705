// Is a plan true? Recounted on paper by the validator, which shares no code with the planner, and
// run on real kernels. A plan for PyTorch is recounted from the step that it was made of, and run
// by PyTorch alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "answers/planning/recounted_plan.hpp"
#include "gpu_probe/cuda/cuda_node_counts.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

enum class RunOn { host, cuda };

struct ValidateQuestion {
  std::vector<std::string> plans;  ///< files, one of which may be "-" for stdin; never empty
  std::map<std::string, SourceTextPtr> texts;  ///< of `plans`, those that have been read already
  std::map<std::string, PytorchPlanQuestion> for_pytorch;  ///< those of `plans`, by their file
  bool keep_answers = true;                                ///< cuDNN's, from run to run
  bool compare_source = false;  ///< with what the description in the plan lowers to now
  bool run = true;
  RunOn on = RunOn::host;
  std::int64_t steps = 1;      ///< how many are run
  bool measures_anew = false;  ///< the run's times are to be planned with, not held against others
  bool insists = false;        ///< the run was asked for by name, and is no mere default
};

/// What a GPU would have been given.
struct WantedRun {
  CudaNodeCounts kernels;
  std::vector<std::string> missing;  ///< why it would be refused all the same
};

/// What became of one plan.
struct PlanFindings {
  std::string file;                                   ///< as asked for
  Plan plan;                                          ///< empty with for_pytorch
  std::optional<PytorchPlan> for_pytorch;             ///< the plan, where it is one for PyTorch
  std::vector<std::pair<std::string, Check>> checks;  ///< where: "model", "host", "cuda"
  std::vector<std::string> ran;
  std::int64_t steps = 1;  ///< that are run
  std::optional<RunReport> run;
  std::string not_run;  ///< why the run that was asked for did not take place
  bool needs_gpu = false;
  bool is_refused = false;          ///< the run: not_run says why
  std::optional<WantedRun> wanted;  ///< where it needs a GPU

  void add(const std::string& where, const std::vector<Check>& more);
  [[nodiscard]] bool passed() const;
};

struct ValidateAnswer {
  std::vector<PlanFindings> plans;  ///< as asked for
};

/// All plans are read before any is run, so that a mistake in the last is told at once. `at_plan`:
/// called before each. Errors: a plan that cannot be read; of one plan alone also what run_plan
/// refuses, which is no finding about the plan.
[[nodiscard]] Result<ValidateAnswer> answer(
    const ValidateQuestion& question, const std::function<void(const std::string&)>& at_plan = {});

/// What the run measured, as the file that plans are made with; empty: nothing that is valid was
/// measured.
[[nodiscard]] std::string measured_calibration(const PlanFindings& findings);

/// The share of the run's time that it waited for a core, where that is so much that the machine
/// was not idle and the times are too long; none: it was idle, or nobody knows.
[[nodiscard]] std::optional<double> waits_of_busy_machine(const PlanFindings& findings);

}  // namespace stowage
