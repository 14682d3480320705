// How the summary of weight files is shown: what lies on disk, by format.
#pragma once

#include "answers/sizing/summary.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

[[nodiscard]] RenderedAnswer rendered(const WeightsSummary& found);

}  // namespace stowage
