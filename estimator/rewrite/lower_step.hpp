// From a ModelGraph to the step that the settings ask for: lowered for one micro-batch, then
// rewritten.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// lower(), with_checkpoints() for the model's checkpointed regions, where the settings say so
/// with_results_in_place(), with_full_sharding(), with_micro_batches(), with_recomputation(), where
/// the settings say so with_early_updates(), and with_order(); with the errors of all.
[[nodiscard]] Result<StepGraph> lower_step(const ModelGraph& model,
                                           const LoweringSettings& settings);

}  // namespace stowage
