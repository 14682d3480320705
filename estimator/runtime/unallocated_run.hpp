// A run without an allocator: all memory is there from the start, so that nothing is simulated.
#pragma once

#include <vector>

#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

/// The bytes that a step with these rules takes of the card.
using HeldBytes = Bytes (*)(const StepOnCard& on_card, const MemoryRules& rules);

/// Never fails: whether the step fits is seen from the run's figures.
[[nodiscard]] RuntimeRun run_unallocated(const StepOnCard& on_card, HeldBytes held);
/// Whether the card has room for the run, the context and the libraries.
[[nodiscard]] bool completes_unallocated(const StepOnCard& on_card, HeldBytes held);

/// Those of data-parallel training (memory/partition.hpp).
[[nodiscard]] std::vector<RuntimeBuffer> unallocated_buffers(const StepGraph& graph,
                                                             const Card& card,
                                                             const CheckSettings& settings);

}  // namespace stowage
