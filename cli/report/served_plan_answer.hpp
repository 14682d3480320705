// What a plan of serving says beyond a step's: its passes, decode again and again, and where the
// weights and the cache lie.
#pragma once

#include "answers/planning/plan.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// Adds to the JSON `serving`, `prefill`, `decode` and, where a plan is chosen, `homes`; and says
/// the same. Precondition: the answer has `serving` and plans.
void add_served_plan(const PlanAnswer& found, Report& out);

/// "llama-3-8b serving 1 user of 8,192 tokens, bf16, paged cache in blocks of 16". Precondition: as
/// above, but for plans.
[[nodiscard]] std::string describe_served(const PlanAnswer& found);

}  // namespace stowage
