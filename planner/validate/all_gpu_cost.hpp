// The cost of the step without a limit on memory, counted again: one minimum cut of the problem
// that the plan states (stated_problem.hpp), without prices.
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

/// The least costs of plans with unlimited memory: one, of the scope of the certificate's bound on
/// the cost. A plan without such a bound does not say which nodes its bounds keep on the GPU: then
/// one for each choice of these that its levers and its own nodes leave. nullopt: its times cannot
/// be added up, or a cut takes too long.
[[nodiscard]] std::optional<std::vector<double>> all_gpu_costs(const Plan& plan);

}  // namespace stowage
