// StepCase: one rewriting of the step, sized, and the problems that its plans are made from.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/assemble/all_gpu_step.hpp"
#include "planner/certificate/certificate.hpp"
#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"
#include "planner/propose/plan_request.hpp"
#include "planner/solve/solve.hpp"

namespace stowage {

/// The proposals that a search left out or cut short. Safe to be told from several threads.
class SearchGaps {
 public:
  void add_tried(const std::string& name);
  void add_untried(const std::string& name);
  void add_cut_short(const std::string& name);
  /// A name that was both tried and not, as that of several rewritings, is cut short.
  [[nodiscard]] SearchOutcome outcome(Work limit, Work spent) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> tried_, untried_, cut_short_;
};

/// The request and the rates that all cases of a request share, and the work that is left for the
/// search, or for the part of it that has this object.
class Planning {
  struct Owned;
  std::unique_ptr<Owned> owned_;  // by the whole search's

 public:
  const PlanRequest& request;
  WorkspaceSource& workspaces;
  const ProposalOptions& options;
  const StepDocument& document;  ///< the parts of the request's document that a plan keeps
  const Rates& rates;
  WorkBudget& work;
  SearchGaps& gaps;

  /// A search with the work of `how`, or with another amount.
  Planning(const PlanRequest& planned, WorkspaceSource& source, const ProposalOptions& how);
  Planning(const PlanRequest& planned, WorkspaceSource& source, const ProposalOptions& how,
           Work limit);
  /// The part of a search that has `part`; both outlive it.
  Planning(const Planning& whole, WorkBudget& part);
  ~Planning();

  [[nodiscard]] bool is_cancelled() const { return work.is_cancelled(); }
  /// Whether the search is cancelled or its work is over. Only what a first plan needs is done
  /// then.
  [[nodiscard]] bool is_over() const { return work.is_over(); }
  /// Options for a solve with its own part of the work.
  [[nodiscard]] SolveOptions solve_options(WorkBudget& part) const;
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

/// Makes it a case of the request's budget, which has changed since. Precondition: its operators
/// are not settled (`open` is empty), so that nothing else depends on the budget.
void follow_budget(const Planning& planning, StepCase& of);

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
