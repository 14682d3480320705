// StepCase: one rewriting of the step, sized, and the problems that its plans are made from.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/assemble/all_gpu_step.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/propose/plan_request.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {

/// What all cases of a request share.
class Planning {
 public:
  const PlanRequest& request;
  WorkspaceSource& workspaces;
  const ProposalOptions& options;
  StepDocument document;  ///< what a plan keeps of the request's
  Rates rates;

  Planning(const PlanRequest& planned, WorkspaceSource& source, const ProposalOptions& how);
  [[nodiscard]] bool is_cancelled() const { return options.cancelled && options.cancelled(); }
  [[nodiscard]] double seconds_left() const;  ///< of the time limit, which began with this
  /// What is not needed for a first plan is left out then.
  [[nodiscard]] bool is_over() const { return is_cancelled() || seconds_left() <= 0; }
  /// A search is given a little time even where none is left: it finds something.
  [[nodiscard]] double at_least(double seconds) const;
  /// For a share of the time that is left.
  [[nodiscard]] SolveOptions solve_options(double share = 1) const;

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// What bounds the plans of a step whose operators have been settled (settle_operators.hpp).
struct OpenProblem {
  ResidencyProblem problem;
  double cost_lower_bound_seconds = 0;
  double all_gpu_cost_seconds = 0;
  BranchTree proof;  ///< of the bound
};

struct StepCase {
  SizedStep step;
  StepPins pins;                    ///< the user's
  Pinned pinned;                    ///< what the levers keep on the GPU beyond these
  ResidencyProblem placed;          ///< as the levers allow
  std::optional<OpenProblem> open;  ///< where the operators of `placed` are settled
  BoundScope scope;         ///< what its bounds' problem keeps on the GPU beside the user's pins
  ResidencyProblem on_gpu;  ///< every operation on the GPU, as min-pcie has it
  AllGpuStep all_gpu;       ///< of `on_gpu`
};

/// Errors: the micro-batches cannot share the batch; the step cannot be sized; pins do not apply.
[[nodiscard]] Result<StepCase> make_case(const Planning& planning,
                                         std::shared_ptr<const StepGraph> graph);

/// As if the GPU had room for everything: as assemble_plan leaves it.
[[nodiscard]] Plan assemble_all_gpu(const Planning& planning, const StepCase& of);
/// The same where its arena is within the budget.
[[nodiscard]] std::optional<Plan> fitting_all_gpu(const Planning& planning, const StepCase& of);

/// The problem of bytes over PCIe: one second a billion bytes and nothing else.
inline constexpr double problem_bytes_a_second = 1e9;
struct ByteProblem {
  ResidencyProblem problem;
  BoundScope scope;
};
/// Forward and backward are on the GPU in any case.
struct ByteOptions {
  bool updates_on_gpu = false;  ///< else as the levers allow
  bool kept = true;             ///< what the levers keep on the GPU between such nodes stays there
};
[[nodiscard]] ByteProblem byte_problem(const Planning& planning, const StepCase& of,
                                       const ByteOptions& options);

}  // namespace stowage
