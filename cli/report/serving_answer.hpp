// How serving is shown: each pass's peak, the cache in both, the verdict.
#pragma once

#include "answers/sizing/serving.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// `verbose`: every tensor.
[[nodiscard]] RenderedAnswer rendered(const ServingAnswer& found, bool verbose);

}  // namespace stowage
