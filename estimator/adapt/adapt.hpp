// Adaptation: from a model as described to the model that runs.
//
//   ModelGraph -> attention written out -> quantised base -> adapters -> loss in chunks
//              -> checkpointed blocks -> ModelGraph
//
// ModelGraph::attention and ModelGraph::fine_tuning say what to do. Existing operators keep their
// names; an added operator is named after its layer ("layers.0.q_proj.lora_A").
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Errors: a target that names no layer or a layer that takes no adapter; a base format that does
/// not go with the precision; checkpointed blocks that the model does not have. Notes in `warnings`
/// say what was done. Linear in the model times the number of targets.
[[nodiscard]] Result<ModelGraph> adapted(ModelGraph model);

/// load_model(), then adapted().
[[nodiscard]] Result<ModelGraph> load_adapted(SourceTextPtr source,
                                              const ModelOptions& options = {});

}  // namespace stowage
