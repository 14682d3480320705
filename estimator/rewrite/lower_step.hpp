// Lowers a ModelGraph to the step that the settings ask for: lowers one micro-batch, then applies
// the rewrites.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Calls lower(), with_checkpoints() for the model's checkpointed regions, with_results_in_place()
/// if the settings ask for it, with_full_sharding(), with_micro_batches(), with_recomputation(),
/// with_early_updates() if the settings ask for it, and with_order(). Errors: those of all of them.
[[nodiscard]] Result<StepGraph> lower_step(const ModelGraph& model,
                                           const LoweringSettings& settings);

}  // namespace stowage
