// Kernels of a step that are none of the program's: which of them are probably misspelt.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// "did you mean 'relu_forward'?" or "". Names of more than 64 bytes are not looked up.
[[nodiscard]] std::string nearest_kernel(std::string_view name);

/// A warning for each foreign name that is near one of the table's, where the step's other kernels
/// are ours to run: whoever wrote it meant that one. The first 20 foreign names are looked at.
[[nodiscard]] Diagnostics misspelt_kernels(const StepGraph& graph);

}  // namespace stowage
