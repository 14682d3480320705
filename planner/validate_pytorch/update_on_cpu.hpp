// Whether an optimizer's update can run on the CPU, or as gradients come, without a change of the
// training script.
#pragma once

#include <optional>
#include <string>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Why it cannot; none: it can. Gradients leave as soon as they are whole, so that nothing but the
/// update may read one, and each is dropped within the step; the update reads nothing else than
/// gradients, parameters, its state and what it made.
[[nodiscard]] std::optional<std::string> why_update_stays(const StepGraph& step);

}  // namespace stowage
