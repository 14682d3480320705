// How plans and their proofs are shown.
#pragma once

#include "answers/planning/plan.hpp"
#include "cli/options/advice.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// The proposals side by side and the chosen one; or why there is none, and what would do. `typed`:
/// to be repeated in advice. Errors: those of the placement log.
[[nodiscard]] Result<RenderedAnswer> rendered(const PlanAnswer& found, const PlanQuestion& question,
                                              const TypedWords& typed, bool log_placement);

}  // namespace stowage
