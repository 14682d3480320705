// Plans of the step rewritten: each a step of its own, with its own bounds.
#pragma once

#include <optional>
#include <vector>

#include "planner/propose/step_plans.hpp"

namespace stowage {

/// Each parameter updated right after its gradient (rewrite/early_updates.hpp). None: an inference,
/// a step that has them early, no plan.
[[nodiscard]] std::optional<Plan> early_updates_plan(const Planning& planning,
                                                     const StepCase& whole,
                                                     Effort effort = Effort::full);

/// Values of the forward pass made again in backward (planner/recompute), the rest swapped where
/// that is shorter: the shortest step of a few such choices. None: nothing can be recomputed, no
/// plan.
[[nodiscard]] std::optional<Plan> recompute_plan(const Planning& planning, const StepCase& whole,
                                                 Effort effort = Effort::full);

/// The batch in parts: micro-batches of a step that trains, chunks of an inference. The shortest
/// step among the fewest parts that need no swapping and a few that swap. None: the step has
/// micro-batches already or one batch only, or no number of parts has a plan.
[[nodiscard]] std::optional<Plan> parts_plan(const Planning& planning, const StepCase& whole);

}  // namespace stowage
