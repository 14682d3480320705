// How the differences between two plans are shown.
#pragma once

#include "answers/planning/diff.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// `verbose`: every change.
[[nodiscard]] RenderedAnswer rendered(const DiffAnswer& found, const DiffQuestion& question,
                                      bool verbose);

}  // namespace stowage
