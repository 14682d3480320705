// How the validation of plans is shown: the checks, what a run measured, and what could not be run.
#pragma once

#include "answers/planning/validate.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

/// Several plans one after the other, each under its file's name.
[[nodiscard]] RenderedAnswer rendered(const ValidateAnswer& found);

}  // namespace stowage
