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

/// The request and the rates that all cases of a request share, and the time that is left.
class Planning {
 public:
  const PlanRequest& request;
  WorkspaceSource& workspaces;
  const ProposalOptions& options;
  StepDocument document;  ///< the parts of the request's document that a plan keeps
  Rates rates;

  Planning(const PlanRequest& planned, WorkspaceSource& source, const ProposalOptions& how);
  [[nodiscard]] bool is_cancelled() const { return options.cancelled && options.cancelled(); }
  [[nodiscard]] double seconds_left() const;  ///< of the time limit, which began at construction
  /// Whether the search is cancelled or its time is over. Only what a first plan needs is done
  /// then.
  [[nodiscard]] bool is_over() const { return is_cancelled() || seconds_left() <= 0; }
  /// `seconds`, but at least a small share of the time limit: a search finds something in that
  /// time.
  [[nodiscard]] double at_least(double seconds) const;
  /// Options for a solve that may take a share of the time that is left.
  [[nodiscard]] SolveOptions solve_options(double share = 1) const;

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The problem that bounds the plans of a step whose operators have been settled
/// (settle_operators.hpp).
struct OpenProblem {
  ResidencyProblem problem;
  double cost_lower_bound_seconds = 0;
  double all_gpu_cost_seconds = 0;
  BranchTree proof;  ///< proof of the bound
};

struct StepCase {
  SizedStep step;
  StepPins pins;                    ///< the user's pins
  Pinned pinned;                    ///< the nodes that the levers keep on the GPU beyond the pins
  ResidencyProblem placed;          ///< with the means that the levers allow
  std::optional<OpenProblem> open;  ///< if the operators of `placed` are settled
  BoundScope scope;                 ///< of its bounds: what stays on the GPU beside the user's pins
  ResidencyProblem on_gpu;          ///< every operation on the GPU, as min-pcie has it
  AllGpuStep all_gpu;               ///< of `on_gpu`
};

/// Errors: the micro-batches cannot share the batch; the step cannot be sized; pins do not apply.
[[nodiscard]] Result<StepCase> make_case(const Planning& planning,
                                         std::shared_ptr<const StepGraph> graph);

/// The plan with everything on the GPU and unlimited memory, as assemble_plan leaves it.
[[nodiscard]] Plan assemble_all_gpu(const Planning& planning, const StepCase& of);
/// That plan, if its arena is within the budget.
[[nodiscard]] std::optional<Plan> fitting_all_gpu(const Planning& planning, const StepCase& of);

/// The problem of bytes over PCIe: copies cost one second a billion bytes, and nothing else costs
/// anything.
inline constexpr double problem_bytes_a_second = 1e9;
struct ByteProblem {
  ResidencyProblem problem;
  BoundScope scope;
};
/// Options of a byte problem. Forward and backward are always on the GPU.
struct ByteOptions {
  bool updates_on_gpu = false;  ///< updates too; else as the levers allow
  bool kept = true;  ///< storages that the levers keep on the GPU between such nodes stay there
};
[[nodiscard]] ByteProblem byte_problem(const Planning& planning, const StepCase& of,
                                       const ByteOptions& options);

}  // namespace stowage
