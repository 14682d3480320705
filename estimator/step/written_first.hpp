// Whether every value of a step is made before it is read.
#pragma once

#include <optional>
#include <string>

#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The first node that reads a storage which neither exists before the step nor is uploaded, before
/// anything has written it, in words; none: there is no such node. Scratch, which a node fills on
/// its own, is left out. O(size of the graph).
[[nodiscard]] std::optional<std::string> read_before_written(const StepGraph& graph);

}  // namespace stowage
