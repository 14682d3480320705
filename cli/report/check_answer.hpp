// How the answer to a check of one model on one card is shown.
#pragma once

#include "answers/report/step_memory.hpp"
#include "answers/sizing/check.hpp"
#include "cli/options/advice.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// `typed`: to be repeated in advice. `verbose`: every tensor, every kernel's workspace. `memory`:
/// over the same step, for the chart that a terminal shows; null: none.
[[nodiscard]] RenderedAnswer rendered(const CheckAnswer& found, const TypedWords& typed,
                                      bool verbose, const MemoryOverStep* memory);

}  // namespace stowage
