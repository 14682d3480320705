// What a request for plans means: the step, the card, the host and the budget to plan for.
#pragma once

#include <string>

#include "cli/options/request.hpp"
#include "cli/report/no_plan.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

struct PreparedPlan {
  PlanRequest request;
  ArenaOfTotal arena_of;  ///< of the requested card
  Diagnostics notes;

  void note(std::string text) {
    notes.push_back({.severity = Severity::note, .message = std::move(text)});
  }
  void note(const Diagnostics& more) { notes.insert(notes.end(), more.begin(), more.end()); }
};

/// The budget is still 0 where it is a share of the step's least arena, and where the card has
/// nothing left for one (`request.available` is 0 or less then). Errors: what the request names
/// cannot be read or does not go together; a runtime or a step that is not planned.
[[nodiscard]] Result<PreparedPlan> requested_planning(const PlanningRequest& asked);

/// "--budget 80%", of what the step takes with everything on the GPU. Precondition:
/// asked.budget_share. Errors: as make_plans' for a step that cannot be sized; more than the card
/// leaves.
[[nodiscard]] Result<void> set_share_of_budget(const PlanningRequest& asked,
                                               WorkspaceSource& workspaces, PlanRequest& request);

}  // namespace stowage
