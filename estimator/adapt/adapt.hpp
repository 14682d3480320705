// Adaptation: from a model as described to the model that is fine-tuned.
//
//   ModelGraph -> quantised base -> adapters -> loss in chunks -> checkpointed blocks -> ModelGraph
//
// What is done is ModelGraph::fine_tuning. The graph keeps its names; what is added is named after
// the layer beside which it stands ("layers.0.q_proj.lora_A").
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Errors: a target that names no layer, or one that takes no adapter; a base that the precision
/// does not serve; blocks that are not there. What was done is told in `warnings`, as notes.
/// Linear in the model times the number of targets.
[[nodiscard]] Result<ModelGraph> adapted(ModelGraph model);

/// load_model(), then adapted().
[[nodiscard]] Result<ModelGraph> load_adapted(SourceTextPtr source,
                                              const ModelOptions& options = {});

}  // namespace stowage
