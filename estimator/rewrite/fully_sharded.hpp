// A step of one GPU among several that train with PyTorch's fully_shard (FSDP2), out of the step of
// a whole replica.
//
//   forward    gather root | gather block 0, a, b, reshard | gather block 1, c, reshard | loss
//   backward   gather block 1, [gather block 0] c, reshard, reduce-scatter block 1 | b, a, ...
//
// The parameters' storages become this GPU's shards. What kernels read is gathered into storages
// "NAME.unsharded": before the first kernel of the group in forward, until the group has run
// (reshard_after_forward), and again for backward. As PyTorch 2.15 does it (torch/distributed/fsdp/
// _fully_shard: _fsdp_collectives.py, _fsdp_param_group.py, _fsdp_state.py):
//
// - a gather casts the shards (foreach_all_gather), collects all shards of the group in one buffer
//   and copies them apart (split_with_sizes_copy). In forward the buffer lives until the next
//   group's is there, since copy and next gather overlap; in backward it is let go at once, and the
//   gather of the group before starts (_backward_prefetch);
// - the group's gradients are copied into one buffer of the reduced format (chunk_cat), which lives
//   until the next group's gradients are whole; the reduced shards are one storage, cast to the
//   parameters' own format;
// - the root's group is gathered from the step's start to the end of backward. A group whose input
//   wants no gradient is reduced at the end too, after the root's;
// - the optimizer sees the shards: its state and its temporaries are theirs;
// - gathers and reductions allocate on streams of their own: the attribute `stream` of a node is
// the
//   stream on which its results and temporaries lie (0, or none: the kernels').
//
// One GPU is served as FSDP serves it: nothing is communicated, and parameters and gradients are
// copied all the same. Offloaded (CPUOffloadPolicy), shards, gradients and state are host_buffers,
// the update runs on the CPU, and the shards come over before each gather.
// Not here: what kernels of PyTorch's keep of lists of pointers (split_with_sizes_copy, chunk_cat).
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The streams of FSDP's nodes, as the attribute `stream` has them.
inline constexpr std::int64_t gather_stream = 1;
inline constexpr std::int64_t reduce_stream = 2;

/// `step`: of one micro-batch of PyTorch's, lowered from `model`, with its checkpoints. A step that
/// does not train, or without FSDP in its settings, comes back as it is. Linear in the step, but
/// for sorting.
/// Errors: shard_groups' (rewrite/shard_groups.hpp); other kernels than PyTorch's;
/// `zero_grad: to_zero`; an optimizer that needs whole parameters; blocks that run interleaved.
[[nodiscard]] Result<StepGraph> with_full_sharding(StepGraph step, const ModelGraph& model);

}  // namespace stowage
