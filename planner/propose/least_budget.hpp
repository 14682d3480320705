// least_budget: the smallest budget for the arena at which there is a plan, for a request that no
// plan fits.
#pragma once

#include <optional>
#include <string>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

struct LeastBudget {
  Bytes bytes;       ///< at this budget make_plans finds a plan that does not change the training
  std::string plan;  ///< the proposal: "cheapest", "early-updates", "recompute", "micro-batch-4"
  bool host_holds_it = true;  ///< the host has memory for all that need not stay on the GPU
};

/// The request's own budget is ignored. For the step as it is, with early updates, and in two and
/// in the most parts that are tried, the arena without any item that need not stay is packed. Where
/// recomputation alone decides what stays, its budget is halved down to a sixty-fourth. Where pins
/// decide what stays, another packing may be smaller. The host's memory does not count. None:
/// cancelled, or the step has no plan at any budget. Errors: the step cannot be sized, pins do not
/// apply.
[[nodiscard]] Result<std::optional<LeastBudget>> least_budget(const PlanRequest& request,
                                                              WorkspaceSource& workspaces,
                                                              const ProposalOptions& options = {});

}  // namespace stowage
