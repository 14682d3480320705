// The buffers that a process keeps beside the step's tensors, from its runtime's allocator.
#pragma once

#include <vector>

#include "estimator/card/card.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// settings.resident, and those of the runtime (RuntimeProcess::buffers).
[[nodiscard]] std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                                         const CheckSettings& settings);

}  // namespace stowage
