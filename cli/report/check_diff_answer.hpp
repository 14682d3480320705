// How two checks are shown beside each other.
#pragma once

#include "answers/sizing/check_diff.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// `verbose`: every layer that differs. The exit code is that of the second step's own check.
[[nodiscard]] RenderedAnswer rendered(const CheckDiffAnswer& found, bool verbose);

}  // namespace stowage
