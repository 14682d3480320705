// How a model's summary is shown: its layers, its parameters, what its tensors take.
#pragma once

#include "answers/sizing/summary.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

[[nodiscard]] RenderedAnswer rendered(const ModelSummary& found);

}  // namespace stowage
