// The time of the step without a limit on memory, counted again from the plan's step and machine.
//
// Every node runs on the GPU, in the step's order. Each input is uploaded once, from the step's
// begin, in the order of first reads; a node waits for the inputs that it reads. Everything else is
// on the GPU already.
#pragma once

#include <optional>

#include "planner/plan/plan.hpp"

namespace stowage {

/// nullopt: pins keep something on the CPU. When those nodes and the copies for them run is then a
/// choice, which the plan does not state.
[[nodiscard]] std::optional<double> all_gpu_step_time(const Plan& plan);

}  // namespace stowage
