// The update of sharded parameters: FSDP's, after the gradients' reduction.
//
// Each parameter and its gradient are DTensors, and torch.optim works on this GPU's part of them as
// it does on whole tensors (first shards have no padding). With offload it works on the CPU, where
// torch.optim takes its loop by default (torch/optim/optimizer.py, _default_to_fused_or_foreach).
#pragma once

#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/rewrite/shard_groups.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// torch.optim's element-by-element optimizers run on shards. The others need a parameter's rows,
/// columns, blocks or norm as a whole.
[[nodiscard]] std::optional<Diagnostic> optimizer_that_needs_whole(
    const LoweringSettings& settings);

/// `step`: without an update; its gradients are the reduced ones. `shards`: by ParameterId. With
/// offload it gets no update on the GPU, and host_buffers: each pinned tensor takes a power of two
/// (torch/include/ATen/core/CachingHostAllocator.h).
[[nodiscard]] StepGraph with_sharded_update(StepGraph step, const ModelGraph& model,
                                            const std::vector<ShardGroup>& groups,
                                            const std::vector<TensorView>& shards);

}  // namespace stowage
