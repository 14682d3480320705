// How plans for PyTorch are shown.
#pragma once

#include <string>

#include "answers/planning/pytorch_plan.hpp"
#include "cli/options/advice.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// The proposals side by side, the chosen one, and what PyTorch cannot do of a plan; or why there
/// is none, and what would do, in the words that were typed.
[[nodiscard]] RenderedAnswer rendered(const PytorchAnswer& found, const TypedWords& typed);

/// What can be done with the plan that lies at `path`.
void add_ways_out(const PytorchPlan& plan, const std::string& path, Report& report);

}  // namespace stowage
