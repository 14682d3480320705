// How a plan's explanation is shown: where the named things are, and what else would cost.
#pragma once

#include "answers/planning/explain.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

[[nodiscard]] RenderedAnswer rendered(const ExplainAnswer& found);

}  // namespace stowage
