// Trials and plans of rewritten steps. Each rewriting is a step of its own, with its own bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/propose/trials.hpp"

namespace stowage {

/// Each parameter updated right after its gradient (rewrite/early_updates.hpp). None: the step is
/// an inference or has early updates already.
[[nodiscard]] Trials early_updates_trials(const Planning& planning, const StepCase& whole);

/// Values of the forward pass made again in backward (planner/recompute), and the rest swapped
/// where that is shorter: a few such choices. None: nothing can be recomputed.
[[nodiscard]] Trials recompute_trials(const Planning& planning, const StepCase& whole,
                                      Effort effort);

/// Whether micro-batches of the step train differently from the whole batch at once: batch_norm
/// takes its statistics from each micro-batch.
[[nodiscard]] bool changes_training_in_parts(const StepGraph& step);
/// "micro-batch-4"; for an inference "chunk-4".
[[nodiscard]] std::string parts_name(const StepGraph& step, std::int64_t parts);
/// The numbers of parts in which the batch can be planned, ascending. Empty: the step has
/// micro-batches already, or one batch only.
[[nodiscard]] std::vector<std::int64_t> part_counts(const Planning& planning,
                                                    const StepCase& whole);
/// The batch in parts: micro-batches of a step that trains, chunks of an inference. The candidates
/// are the fewest parts that need no swapping, and a few numbers of parts that swap if these may
/// beat `known` (trials.hpp); the one with the shortest step is the plan. None: the step has
/// micro-batches already or one batch only, or no number of parts has a plan.
[[nodiscard]] std::optional<Plan> parts_plan(const Planning& planning, const StepCase& whole,
                                             const Plan* known = nullptr);

}  // namespace stowage
