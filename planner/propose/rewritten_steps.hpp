// Plans of the step rewritten: each a step of its own, with its own bounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/propose/trials.hpp"

namespace stowage {

/// Each parameter updated right after its gradient (rewrite/early_updates.hpp). None: an inference,
/// a step that has them early.
[[nodiscard]] Trials early_updates_trials(const Planning& planning, const StepCase& whole);

/// Values of the forward pass made again in backward (planner/recompute), the rest swapped where
/// that is shorter: a few such choices. None: nothing can be recomputed.
[[nodiscard]] Trials recompute_trials(const Planning& planning, const StepCase& whole,
                                      Effort effort);

/// Whether micro-batches of the step train otherwise than all of the batch at once: batch_norm
/// takes its statistics from each.
[[nodiscard]] bool changes_training_in_parts(const StepGraph& step);
/// "micro-batch-4", of an inference "chunk-4".
[[nodiscard]] std::string parts_name(const StepGraph& step, std::int64_t parts);
/// The numbers of parts that the batch can be planned in, ascending; empty: the step has
/// micro-batches already, or one batch only.
[[nodiscard]] std::vector<std::int64_t> part_counts(const Planning& planning,
                                                    const StepCase& whole);
/// The batch in parts: micro-batches of a step that trains, chunks of an inference. The shortest
/// step among the fewest parts that need no swapping and a few that swap, if these may beat `known`
/// (trials.hpp). None: the step has micro-batches already or one batch only, or no number of parts
/// has a plan.
[[nodiscard]] std::optional<Plan> parts_plan(const Planning& planning, const StepCase& whole,
                                             const Plan* known = nullptr);

}  // namespace stowage
