// Chooses the checkpointed regions of a model from a setting instead of its description.
//
// Without patterns the regions are the repeated blocks, as transformers'
// gradient_checkpointing_enable takes each decoder layer (use_reentrant=False). A layer's block is
// the part of its path up to the first number: "layers.3" of "layers.3.mlp.act". Blocks of one name
// with different numbers form a chain; a chain has at least two blocks, and at least one of them
// has several operators.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// Replaces the regions of the description. A loss is never in a block. A note names the chosen
/// regions. Errors: a model without a chain; a pattern that no layer fits.
[[nodiscard]] Result<ModelGraph> with_checkpointed_blocks(ModelGraph model,
                                                          const CheckpointSettings& checkpoint);

}  // namespace stowage
