// Which parts of a model are checkpointed, where a setting says it and not the description.
//
// Unsaid: the repeated blocks, as transformers' gradient_checkpointing_enable takes each decoder
// layer (use_reentrant=False). A layer's path tells the block: "layers.3" of "layers.3.mlp.act",
// the part up to its first number. Blocks of one name with different numbers are a chain; a chain
// has at least two blocks, of which one has several operators.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// In place of what the description checkpoints. Losses are never in a block. A note says what was
/// chosen. Errors: a model without a chain; a pattern that no layer fits.
[[nodiscard]] Result<ModelGraph> with_checkpointed_blocks(ModelGraph model,
                                                          const CheckpointSettings& checkpoint);

}  // namespace stowage
