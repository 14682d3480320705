// Plans of a round of serving: what lies on the GPU in prefill and in decode alike, and what each
// pass fetches or computes on the CPU.
//
// Engines keep a weight, or a layer's cache, on one side for as long as they serve. So each storage
// that outlasts a pass has one home here. Decode, which runs again and again, decides the homes: it
// is planned by itself, within what prefill's larger activations leave it. The round is planned
// with these homes, and where it does not fit, decode gets less. It also gets less where that
// shortens prefill by more than it costs an answer of 256 tokens.
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/plan.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

/// A plan of decode by itself, one pass after the other.
struct DecodePlan {
  GpuBudget budget;  ///< what it was planned within
  double step_seconds = 0;
  std::optional<double> step_lower_bound_seconds;  ///< within that budget
};

struct ServedPlans {
  Result<std::vector<Plan>> plans = {};  ///< of the round, as make_plans' for its homes
  std::optional<DecodePlan> decode;  ///< with the homes of `plans`; none: nothing has one on the
                                     ///< GPU, or there is no plan
  SearchOutcome outcome = {};        ///< of the search that found `plans`
};

/// `round`: a served_round. `decode`: its second pass alone, of the same batch. Errors of `plans`:
/// make_plans'. Searches several times as much as make_plans. Of `options`, `ended` is not called.
[[nodiscard]] ServedPlans make_served_plans(const PlanRequest& round, const StepDocument& decode,
                                            WorkspaceSource& workspaces,
                                            const ProposalOptions& options);

}  // namespace stowage
