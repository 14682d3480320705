// Trials: several rewritings of a step, each looked at briefly; the best is then searched on.
#pragma once

#include <optional>

#include "planner/propose/step_plans.hpp"

namespace stowage {

/// The case of a rewritten step, assembled once without a limit. Errors: make_case's.
[[nodiscard]] Result<StepCase> case_of(const Planning& planning, StepGraph graph);

/// A plan of the step, which is kept with its case for a longer search where it is the best.
struct Trial {
  StepCase of;
  Plan plan;
};
/// Keeps the better of the two.
void try_step(const Planning& planning, StepGraph graph, std::optional<Trial>& best);

/// The trial's plan, or a better one that a longer search finds.
[[nodiscard]] Plan searched_on(const Planning& planning, Trial trial, Effort effort);

}  // namespace stowage
