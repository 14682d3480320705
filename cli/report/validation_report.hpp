// How a plan's validation is told: its checks, what a run measured, and what could not be run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/exit_code.hpp"
#include "cli/output/report.hpp"
#include "gpu_probe/cuda/cuda_node_counts.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// What a GPU would have been given.
struct WantedRun {
  CudaNodeCounts kernels;
  std::vector<std::string> missing;  ///< why it would be refused all the same
};

/// What became of one plan.
struct Proceedings {
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
  [[nodiscard]] ExitCode exit_code() const;
};

[[nodiscard]] Json::Object validation_json(const Proceedings& proceedings, const Plan& plan);
/// The checks and the verdict, and what was measured.
void say_validation(const Proceedings& proceedings, const Plan& plan, Report& out);
/// Every check, for CSV. `of`: the plan's file, in a column of its own; "": one plan alone.
void list_checks(const Proceedings& proceedings, const std::string& of, Table& listing);

}  // namespace stowage
