// Where nothing fits: the smallest budget for the arena at which there is a plan.
#pragma once

#include <optional>
#include <string>

#include "estimator/workspace/workspace_source.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

struct LeastBudget {
  Bytes bytes;       ///< with as much, make_plans finds a plan that leaves the training as it is
  std::string plan;  ///< by which: "cheapest", "early-updates", "recompute", "micro-batch-4"
  bool host_holds_it = true;  ///< the host has room for all that need not stay on the GPU
};

/// The request's own budget is not looked at. Of the step as it is and with early updates the
/// arena is packed in which no item stays that need not, of parts the same with two and with the
/// most that are tried; recomputation is halved down to a sixty-fourth where it alone decides what
/// stays. Where what stays is decided by pins, another packing may be smaller. The host's memory
/// does not count. None: cancelled, or the step has no plan at any budget. Errors: the step cannot
/// be sized, pins do not apply.
[[nodiscard]] Result<std::optional<LeastBudget>> least_budget(const PlanRequest& request,
                                                              WorkspaceSource& workspaces,
                                                              const ProposalOptions& options = {});

}  // namespace stowage
