// What a question for plans means: the step, the card, the host and the budget to plan for.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "answers/planning/plan_question.hpp"
#include "answers/planning/served_step.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

/// What a card of that total, and the asked one's else, leaves for an arena.
using ArenaOfTotal = std::function<Bytes(Bytes)>;

struct PreparedPlan {
  PlanRequest request;
  ArenaOfTotal arena_of;              ///< of the asked card
  CheckSettings process;              ///< with which the step's own runtime is sized
  std::optional<ServedStep> serving;  ///< there: `request` is of a round of it
  Diagnostics notes;
};

/// The budget is still 0 where it is a share of the step's least arena, and where the card has
/// nothing left for one (`request.available` is 0 or less then). Errors: what the question names
/// cannot be read or does not go together; a runtime or a step that is not planned.
[[nodiscard]] Result<PreparedPlan> prepare_plan(const PlanQuestion& question);

/// The budget as a share of what the step takes with everything on the GPU. Precondition:
/// question.budget_share. Errors: as make_plans' for a step that cannot be sized; more than the
/// card leaves.
[[nodiscard]] Result<void> set_share_of_budget(const PlanQuestion& question,
                                               WorkspaceSource& workspaces, PlanRequest& request);

}  // namespace stowage
