// Adds the update of FSDP's sharded parameters, after the reduction of the gradients.
//
// Each parameter and its gradient are DTensors, and torch.optim works on this GPU's shards as on
// whole tensors (first shards have no padding). With offload it runs on the CPU, where
// torch.optim's default is the for-loop (torch/optim/optimizer.py, _default_to_fused_or_foreach).
#pragma once

#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/rewrite/shard_groups.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// An error if the optimizer cannot run on shards because it needs whole rows, columns, blocks or
/// norms of a parameter. torch.optim's element-by-element optimizers can.
[[nodiscard]] std::optional<Diagnostic> optimizer_that_needs_whole(
    const LoweringSettings& settings);

/// `step`: without an update, and with the reduced gradients. `shards`: by ParameterId. With
/// offload no update on the GPU is added but host_buffers, in which the size of each pinned tensor
/// is rounded up to a power of two (torch/include/ATen/core/CachingHostAllocator.h).
[[nodiscard]] StepGraph with_sharded_update(StepGraph step, const ModelGraph& model,
                                            const std::vector<ShardGroup>& groups,
                                            const std::vector<TensorView>& shards);

}  // namespace stowage
