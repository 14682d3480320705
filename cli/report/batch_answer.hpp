// How the largest batch, and the largest value of another quantity, are shown.
#pragma once

#include "answers/sizing/batch.hpp"
#include "answers/sizing/largest_value.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

[[nodiscard]] RenderedAnswer rendered(const BatchAnswer& found);
[[nodiscard]] RenderedAnswer rendered(const LargestValueAnswer& found);

}  // namespace stowage
