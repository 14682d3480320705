// The answer where no plan keeps within the budget or none is chosen: the operation that breaks it,
// its items, and the smallest memory that would do, as a command to type.
#pragma once

#include "answers/planning/plan.hpp"
#include "cli/options/advice.hpp"
#include "cli/output/report.hpp"

namespace stowage {

/// Precondition: found.why_none.
[[nodiscard]] Report no_plan_report(const PlanAnswer& found);

/// Adds the least memory that was found, and the command that asks for it; nothing where none was.
void add_what_would_do(const PlanAnswer& found, const PlanQuestion& question,
                       const TypedWords& typed, Report& report);

}  // namespace stowage
