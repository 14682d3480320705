// Whether a plan and a step graph belong together, asked before the plan is executed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

/// How the plan and the step graph that its description lowers to disagree: nodes, storages, sizes,
/// ranges. Empty: they agree.
[[nodiscard]] std::vector<std::string> mismatches(const Plan& plan, const StepGraph& graph);

/// The batch of one micro-batch.
[[nodiscard]] std::int64_t micro_batch_size(const Plan& plan);

}  // namespace stowage
